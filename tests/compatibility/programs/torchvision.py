import torch
import torchvision
from torch import nn
from torchvision import ops, tv_tensors
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.transforms import v2


def _boxes(count):
    corners = torch.rand(count, 2) * 32
    return torch.cat([corners, corners + 16], 1).to("cuda")


def classifier():
    """ResNet-18: a training step under autocast."""
    model = torchvision.models.resnet18(num_classes=4).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images, labels = torch.rand(2, 3, 32, 32, device="cuda"), torch.zeros(2, dtype=torch.long, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    loss.item()


def suppression():
    """Boxes: their overlap, nms, and nms by class."""
    boxes, scores = _boxes(20), torch.rand(20, device="cuda")
    ops.box_iou(boxes, boxes)
    ops.nms(boxes, scores, 0.5)
    ops.batched_nms(boxes, scores, torch.arange(20, device="cuda") % 2, 0.5)


def regions():
    """roi_align of a list of boxes, forward and backward."""
    features = torch.rand(2, 4, 16, 16, device="cuda", requires_grad=True)
    ops.roi_align(features, [_boxes(3), _boxes(2)], 4, spatial_scale=0.25).sum().backward()


def _detector():
    backbone = nn.Sequential(nn.Conv2d(3, 8, 3, stride=8, padding=1), nn.ReLU())
    backbone.out_channels = 8
    return FasterRCNN(
        backbone,
        min_size=64,
        max_size=64,
        rpn_anchor_generator=AnchorGenerator(sizes=((16, 32),), aspect_ratios=((1.0,),)),
        box_roi_pool=ops.MultiScaleRoIAlign(featmap_names=["0"], output_size=3, sampling_ratio=2),
        box_head=nn.Sequential(nn.Flatten(), nn.Linear(8 * 9, 16), nn.ReLU()),
        box_predictor=torchvision.models.detection.faster_rcnn.FastRCNNPredictor(16, 3),
        rpn_post_nms_top_n_train=20,
        rpn_post_nms_top_n_test=20,
    ).to("cuda")


def detector_training():
    """Faster R-CNN on a small backbone: a training step."""
    model = _detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    target = {"boxes": _boxes(2), "labels": torch.ones(2, dtype=torch.long, device="cuda")}
    sum(model(list(torch.rand(1, 3, 64, 64, device="cuda")), [target]).values()).backward()
    optimizer.step()


def detector():
    """Faster R-CNN on a small backbone: boxes of two images."""
    model = _detector().eval()
    with torch.no_grad():
        model(list(torch.rand(2, 3, 64, 64, device="cuda")))


def transforms():
    """Transforms v2 of an image with its boxes and its mask."""
    augment = v2.Compose(
        [
            v2.RandomResizedCrop(16, antialias=True),
            v2.RandomHorizontalFlip(p=1.0),
            v2.ColorJitter(0.1, 0.1, 0.1, 0.1),
            v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True),
            v2.Normalize([0.5] * 3, [0.5] * 3),
            v2.SanitizeBoundingBoxes(labels_getter=None),
        ]
    )
    image = tv_tensors.Image(torch.zeros(3, 32, 32, dtype=torch.uint8, device="cuda"))
    boxes = tv_tensors.BoundingBoxes(_boxes(3), format="XYXY", canvas_size=(32, 32))
    mask = tv_tensors.Mask(torch.zeros(1, 32, 32, dtype=torch.uint8, device="cuda"))
    augment({"image": image, "boxes": boxes, "mask": mask})
