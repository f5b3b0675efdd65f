"""How many multiply-adds people have published for their networks, or a formula for them gives.

A plain table, in thousand millions (GMAC). torchvision states its own in `weights.meta["_ops"]`,
which the tests of classifiers read; here are those that need a special input or a note.

What we count as a multiply-add is a term of a product of matrices or of a convolution. For
ViT-B/16 that is 17.5638, which torchvision rounds to 17.56. Other tables have 17.58, which is what
comes out if each layer norm counts as five operations an element and is added to the
multiply-adds: 25 norms × 197 × 768 × 5 = 0.0189, together 17.5827. The two differ by less than
0.11 %, and ours are the multiply-adds alone.
"""

from __future__ import annotations

VIT_B_16 = 17.563828224
VIT_B_16_WITH_NORMS = VIT_B_16 + 25 * 197 * 768 * 5 / 1e9

# Video: 16 frames of the size that the weights were trained with.
VIDEO = {
    "mc3_18": 43.343,
    "r3d_18": 40.697,
    "r2plus1d_18": 40.519,
    "s3d": 17.979,
    "mvit_v1_b": 70.599,
    "mvit_v2_s": 64.224,
    "swin3d_t": 43.882,
    "swin3d_s": 82.841,
    "swin3d_b": 140.667,
}

# Segmentation, with the second classifier that the weights have: images of 520 × 520.
SEGMENTATION = {
    "fcn_resnet50": 152.717,
    "fcn_resnet101": 232.738,
    "deeplabv3_resnet50": 178.722,
    "deeplabv3_resnet101": 258.743,
    "deeplabv3_mobilenet_v3_large": 10.452,
    "lraspp_mobilenet_v3_large": 2.086,
}

# Detection in one stage: what it computes does not depend on what it finds. Images of 800 × 800.
DETECTION = {
    "fcos_resnet50_fpn": 128.207,
    "retinanet_resnet50_fpn": 151.540,
    "retinanet_resnet50_fpn_v2": 152.238,
    "ssd300_vgg16": 34.858,
    "ssdlite320_mobilenet_v3_large": 0.583,
}

# Detection in two stages: published for a run that proposes no region, so these are the layers
# before the regions. What comes behind depends on how many regions the weights propose.
BEFORE_REGIONS = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": 0.719,
    "fasterrcnn_mobilenet_v3_large_fpn": 4.494,
}

# Models of `transformers` as their configurations have them by default, by their papers or by the
# usual formula; (class, configuration, input, GMAC, digits that were published).
TRANSFORMERS = {
    "BERT-base, 128 tokens": ("BertModel", "BertConfig", (1, 128), 11.174, 3),
    "DistilBERT, 128 tokens": ("DistilBertModel", "DistilBertConfig", (1, 128), 5.587, 3),
    "ViT-B/16": ("ViTModel", "ViTConfig", (1, 3, 224, 224), 17.56, 2),
    "BEiT-B/16": ("BeitModel", "BeitConfig", (1, 3, 224, 224), 17.6, 1),
    "Swin-T": ("SwinModel", "SwinConfig", (1, 3, 224, 224), 4.5, 1),
    "ConvNeXt-T": (
        "ConvNextForImageClassification", "ConvNextConfig", (1, 3, 224, 224), 4.5, 1,
    ),
    "ResNet-50": ("ResNetForImageClassification", "ResNetConfig", (1, 3, 224, 224), 4.1, 1),
    "RegNetY-4GF": ("RegNetForImageClassification", "RegNetConfig", (1, 3, 224, 224), 4.0, 1),
    "MobileNetV2": (
        "MobileNetV2ForImageClassification", "MobileNetV2Config", (1, 3, 224, 224), 0.30, 2,
    ),
    "MobileViT-S": ("MobileViTModel", "MobileViTConfig", (1, 3, 256, 256), 2.0, 1),
    # 0.406 is published, with two classifiers of 384 × 1000 that this does not have.
    "LeViT-128": ("LevitModel", "LevitConfig", (1, 3, 224, 224), 0.405, 3),
    "PoolFormer-S12": ("PoolFormerModel", "PoolFormerConfig", (1, 3, 224, 224), 1.8, 1),
    "PVT-Tiny": ("PvtModel", "PvtConfig", (1, 3, 224, 224), 1.9, 1),
    "FocalNet-T": ("FocalNetModel", "FocalNetConfig", (1, 3, 224, 224), 4.4, 1),
    "VideoMAE-B": ("VideoMAEModel", "VideoMAEConfig", (1, 16, 3, 224, 224), 180.0, 0),
    "TimeSformer": ("TimesformerModel", "TimesformerConfig", (1, 8, 3, 224, 224), 196.0, 0),
}  # fmt: skip
