"""The benchmark's data: cases, readers, checks, images, statistics, export and the phantom generator."""
