"""What is known of GPU models: facts with their sources, and the code that reads them."""
