"""The Think-with-Images workflow: conditions, prompts, parsing and the tasks; how a call is made is not known here."""
