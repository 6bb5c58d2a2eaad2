import kornia
import torch


def filters():
    """Blur, edges and corners."""
    image = torch.rand(1, 3, 16, 16, device="cuda")
    kornia.filters.gaussian_blur2d(image, (3, 3), (1.0, 1.0)).mean().item()
    kornia.filters.sobel(image)
    kornia.feature.harris_response(image)


def augmentation():
    """Random augmentation of a batch."""
    augment = kornia.augmentation.AugmentationSequential(
        kornia.augmentation.RandomAffine(10.0),
        kornia.augmentation.RandomHorizontalFlip(),
        kornia.augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
        data_keys=["input", "mask"],
    )
    augment(torch.rand(2, 3, 16, 16, device="cuda"), torch.ones(2, 1, 16, 16, device="cuda"))


def geometry():
    """A homography of points and the image that it warps."""
    points = torch.rand(1, 8, 2, device="cuda")
    matrix = kornia.geometry.find_homography_dlt(points, points + 0.1)
    kornia.geometry.warp_perspective(torch.rand(1, 1, 16, 16, device="cuda"), matrix, (16, 16))
