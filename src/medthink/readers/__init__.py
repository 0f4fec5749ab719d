"""People's judgements: blinded lists, tables in and out, instructions, and agreement with judges."""
