"""Bridges to other tools: their file formats, and Ray clusters."""
