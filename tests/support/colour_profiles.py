"""A colour profile as files carry it, with its texts."""

from PIL import ImageCms

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
