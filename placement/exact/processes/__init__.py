"""The pipeline in processes that can be killed at a deadline: started, kept, handed work, and listened to."""
