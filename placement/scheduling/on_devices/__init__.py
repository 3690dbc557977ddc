"""The search where counts of free cards do not say enough: jobs are placed device by device."""
