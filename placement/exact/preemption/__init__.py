"""The cheapest victims for a job: a model in counts, and whether the job has room once they have left."""
