"""The benchmark's data: cases, files, checks, images, slices, statistics and export."""
