"""The Think-with-Images workflow: conditions, prompts, parsing and the tasks; independent of how calls are made."""
