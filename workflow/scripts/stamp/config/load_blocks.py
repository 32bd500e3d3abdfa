"""The ``load`` blocks of a zoo: what decides a model's numbers, declared for each source.

A block is checked here and then used as it was written: defaults belong to the loaders and the
training recipes, so that a new default reruns what it changes and nothing else.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, Field, WithJsonSchema

from stamp.config.documents import Distinct, Name, Section, needing

NAME = "[A-Za-z_][A-Za-z0-9_]*"
Text = Annotated[str, Field(min_length=1)]
# Names of what a query should not say of whoever asks.
SECRETS = {"token", "key", "apikey", "sig", "signature", "secret", "auth", "credential"}
SECRETS |= {"password", "passwd", "pwd", "credentials", "authorization", "accesstoken"}


def _address(text: str) -> str:
    """An address that may stand in a rule's params, where all of it is kept and printed."""
    if not re.match("https?://", text):
        raise ValueError("an address begins with http:// or https://")
    rest = text.partition("://")[2]
    query = rest.partition("#")[0].partition("?")[2]
    if "@" in re.split("[/?#]", rest)[0]:
        raise ValueError("an address may not hold a name or a password")
    for name in re.findall("(?:^|[&;])([^=&;]*)", query):
        if SECRETS & set(re.split("[^a-z]+", unquote(name).lower())):
            raise ValueError(
                f"an address may not hold a secret such as its '{name}': download the file yourself"
            )
    return text


Address = Annotated[
    str,
    AfterValidator(_address),
    WithJsonSchema({"type": "string", "pattern": "^https?://"}),
]
Checksum = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=1)]
Epochs = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Mean = Annotated[list[float], Field(min_length=1)]
Std = Annotated[list[Positive], Field(min_length=1)]
Outputs = Annotated[list[Name], Field(min_length=1)]

MEAN = "mean of pixels on [0, 1], one number per channel; when absent, that of the weights"
STD = "standard deviation of pixels on [0, 1], one number per channel"
OUTPUTS = (
    "the classes of its outputs, in their order, where that is not the study's; classes of the "
    "study that it lacks are missing, not zero"
)
PROBABILITIES = "whether its outputs went through a softmax (multiclass) or a sigmoid (multilabel)"
PARAMETERS = "how many parameters it has, where that is known"


class PreprocessingBlock(Section):
    """How an image becomes the pixels that a model sees."""

    size: Count | None = Field(None, description="height and width")
    channels: Literal[1, 3] | None = Field(None, description="1 (gray) or 3 (colour)")
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos"] | None = Field(
        None, description="`nearest`, `bilinear`, `bicubic` or `lanczos`"
    )
    crop: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="share of the resized shorter side that the centre crop keeps (timm's "
        "`crop_pct`); when absent, the whole image is squeezed",
    )


class Preprocessed(Section):
    """A model with pixels of its own."""

    preprocessing: PreprocessingBlock | None = Field(
        None, description="its own pixels; each key overrides the study's"
    )


class PublishedWeights(Section):
    """Where weights are from: one of ``file``, ``url`` and ``hub``."""

    file: str | None = Field(None, description="weights file: safetensors, or plain tensors")
    url: Address | None = Field(None, description="address of the weights file")
    sha256: Checksum | None = Field(None, description="checksum of the weights file")
    hub: str | None = Field(None, description="repository of the Hugging Face hub")
    hub_file: str | None = Field(None, description="file of that repository")
    revision: Text | None = Field(
        None, description="commit of the hub's repository, which `python -m stamp pin` writes"
    )
    prefix: str | None = Field(
        None, description="only the part of the file whose names begin with this"
    )


class Train(Preprocessed):
    """A network that the workflow trains on the source's train split."""

    source: Literal["train"]
    arch: str = Field(
        description="timm architecture, class of timm's (`mlp_mixer:MlpMixer`), or `linear` "
        "(logistic regression on pixels)"
    )
    arch_args: dict[str, Any] | None = Field(None, description="arguments of the architecture")
    backbone: Literal["supervised", "random", "selfsupervised"] | None = Field(
        None,
        description="`supervised`, `random` or `selfsupervised`; the last two are frozen under a "
        "linear head",
    )
    epochs: Epochs | None = Field(None, description="passes through the training images")
    batch: Count | None = Field(None, description="images per step")
    learning_rate: Positive | None = Field(None, description="learning rate")
    weight_decay: NotNegative | None = Field(None, description="weight decay")
    augment: bool | None = Field(
        None,
        description="random shift, rotation, scale, brightness, contrast, noise and occlusion in "
        "training",
    )
    mixup: NotNegative | None = Field(
        None, description="alpha of mixup (Zhang et al. 2018); 0 is none"
    )
    label_noise: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="share of training labels replaced (multiclass) or flipped (multilabel)"
    )
    fraction: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="share of the training groups (multilabel) or images (multiclass) used"
    )


class InitialWeights(PublishedWeights):
    """The weights that fine-tuning starts from: one of timm, file, url, hub, none."""

    model_config = needing(at_least=1)
    timm: str | None = Field(
        None,
        description="timm name with tag, from the hub; beside a file, the tag whose normalisation "
        "is used",
    )
    none: Literal[True] | None = Field(None, description="`true`: start from random weights")


class WholeNetwork(PublishedWeights):
    """Weights of the whole network, which take the place of training."""

    model_config = needing(at_least=1)
    outputs: Outputs | None = Field(None, description=OUTPUTS)


class ClassifierStage(Section):
    """The first stage of fine-tuning: the classifier alone."""

    epochs: Epochs | None = Field(None, description="passes through the training images")
    learning_rate: Positive | None = Field(None, description="learning rate of the classifier")


class NetworkStage(ClassifierStage):
    """The second stage of fine-tuning: the whole network."""

    backbone_learning_rate: Positive | None = Field(
        None, description="learning rate of everything but the classifier"
    )


class FinetuneRecipe(Section):
    """How a network is fine-tuned, where that is not the default."""

    stage1: ClassifierStage | None = Field(
        None, description="the classifier alone: `epochs`, `learning_rate`"
    )
    stage2: NetworkStage | None = Field(
        None,
        description="the whole network: `epochs`, `learning_rate` of the classifier, "
        "`backbone_learning_rate`",
    )
    weight_decay: NotNegative | None = Field(None, description="weight decay")
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        None, description="label smoothing"
    )
    batch: Count | None = Field(None, description="images per step")
    warmup: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        None, description="share of a stage's steps in which the learning rate rises"
    )
    augment: bool | None = Field(None, description="whether training images are augmented")
    patience: Count | None = Field(
        None, description="epochs without a better validation metric after which training ends"
    )


class Finetune(Preprocessed):
    """A published network with a new classifier, fine-tuned by the workflow in two stages."""

    source: Literal["finetune"]
    arch: str = Field(description="timm architecture")
    arch_args: dict[str, Any] | None = Field(None, description="arguments of the architecture")
    attention: Literal["cbam", "bam"] | None = Field(
        None, description="`cbam` or `bam`: attention modules put into a ResNet"
    )
    initial: InitialWeights = Field(
        description="the weights to start from: one of `timm` (a tag, from the hub), `file`, "
        "`url`, `hub`, or `none: true`"
    )
    checkpoint: WholeNetwork | None = Field(
        None,
        description="weights of the whole network that take the place of training: one of `file`, "
        "`url`, `hub`; with `outputs` where their classes are not the study's",
    )
    mean: Mean | None = Field(None, description=MEAN)
    std: Std | None = Field(None, description=STD)
    recipe: FinetuneRecipe | None = Field(
        None, description="how it is fine-tuned, where that is not the default; see below"
    )


class BackboneBlock(PublishedWeights):
    """A network of timm or of transformers, and where its weights are from."""

    model_config = needing(
        at_least=1,
        transformers=["config", "mean", "std"],
        mean=["std"],
        std=["mean"],
        hub_file=["hub"],
    )
    timm: str | None = Field(None, description="timm name, with tag where the weights are timm's")
    args: dict[str, Any] | None = Field(None, description="arguments of timm's architecture")
    transformers: Literal["Dinov2Model", "CLIPVisionModel"] | None = Field(
        None, description="`Dinov2Model` or `CLIPVisionModel` of transformers"
    )
    config: dict[str, Any] | None = Field(None, description="configuration of that network")
    mean: Mean | None = Field(None, description=MEAN)
    std: Std | None = Field(None, description=STD)


class ProbeBlock(Preprocessed):
    """A frozen published backbone under a linear head that the workflow fits."""

    source: Literal["probe"]
    backbone: BackboneBlock = Field(
        description="`timm` (a name, with tag where the weights are timm's) with `args`, or "
        "`transformers` with its `config`, then `mean`, `std` and where the weights are from"
    )
    penalty: Annotated[Distinct[NotNegative], Field(min_length=1)] | None = Field(
        None,
        description="strengths of the L2 penalty to choose from by the source's `val` split",
    )
    standardise: bool | None = Field(
        None, description="whether embeddings are put to unit variance before the head is fitted"
    )


class Timm(PublishedWeights):
    """A timm model with published weights: those of its tag, or from one of file, url, hub."""

    model_config = needing(mean=["std"], std=["mean"], hub_file=["hub"])
    source: Literal["timm"]
    name: str = Field(description="timm name with tag, such as `resnet50.a1_in1k`")
    head: Literal["random"] | None = Field(
        None,
        description="`random`: an untrained classifier, the same for the same name, on a "
        "checkpoint that was published without one",
    )
    args: dict[str, Any] | None = Field(None, description="arguments of the architecture")
    mean: Mean | None = Field(None, description=MEAN)
    std: Std | None = Field(None, description=STD)
    preprocessing: PreprocessingBlock = Field(description="its input size, crop and interpolation")


class Checkpoint(PublishedWeights, Preprocessed):
    """A timm architecture and published weights from one of file, url, hub."""

    model_config = needing(mean=["std"], std=["mean"], hub_file=["hub"], revision=["hub"])
    source: Literal["checkpoint"]
    arch: str = Field(description="timm architecture")
    arch_args: dict[str, Any] | None = Field(None, description="arguments of the architecture")
    outputs: Outputs | None = Field(None, description=OUTPUTS)
    mean: Mean | None = Field(None, description=MEAN)
    std: Std | None = Field(None, description=STD)


class Torchxrayvision(Preprocessed):
    """A chest X-ray classifier of torchxrayvision, its 18 outputs taken by name as raw logits."""

    source: Literal["torchxrayvision"]
    weights: str = Field(
        description="torchxrayvision's name of the weights, such as `densenet121-res224-all`"
    )
    file: str | None = Field(
        None, description="the published file, or the same weights as safetensors or plain tensors"
    )
    url: Address | None = Field(None, description="address of the weights file")
    sha256: Checksum | None = Field(None, description="checksum of the weights file")


class HuggingFace(Section):
    """An image classifier of the Hugging Face hub, run by transformers (`pip install .[hf]`)."""

    source: Literal["hf"]
    hub: Text = Field(description="its repository, such as `google/vit-base-patch16-224`")
    revision: Text | None = Field(
        None, description="commit of the repository, which `python -m stamp pin` writes"
    )
    labels: Annotated[dict[str, Name], Field(min_length=1)] | None = Field(
        None,
        description="classes of the study by the names in its `id2label`, where these differ",
    )
    preprocessing: PreprocessingBlock = Field(
        description="the pixels that its own processor makes; any others are refused with the "
        "right ones. Mean and std are the processor's"
    )


class BlackBox(Preprocessed):
    """A model that is run as it is, from normalised pixels to outputs."""

    mean: Mean = Field(description="mean of pixels on [0, 1], one number per channel")
    std: Std = Field(description=STD)
    outputs: Outputs | None = Field(None, description=OUTPUTS)
    probabilities: bool | None = Field(None, description=PROBABILITIES)


class Torchscript(BlackBox):
    """A TorchScript file, run as it is."""

    source: Literal["torchscript"]
    file: str = Field(description="as `torch.jit.save` wrote it")
    sha256: Checksum | None = Field(None, description="checksum of the file")


class Onnx(BlackBox):
    """An ONNX file, run by onnxruntime."""

    source: Literal["onnx"]
    file: str = Field(
        description="from float pixels [n, channels, h, w], for any or a fixed number of images, "
        "to outputs [n, classes]"
    )
    sha256: Checksum | None = Field(None, description="checksum of the file")
    output: str | None = Field(
        None, description="the name of the output that is taken, where there are several"
    )
    parameters: Count | None = Field(None, description=PARAMETERS)


class PythonFunction(BlackBox):
    """What a Python function makes; imported only with `allow_code` in config.yaml."""

    source: Literal["python"]
    function: Annotated[str, Field(pattern=f"^{NAME}([.]{NAME})*:{NAME}$")] = Field(
        description="`module:function`, the module in the folder of the run or installed. It "
        "returns a torch module, or any function, from normalised pixels [n, channels, h, w] to "
        "outputs [n, classes]"
    )
    args: dict[str, Any] | None = Field(None, description="keyword arguments of the function")
    file: str | None = Field(
        None, description="weights file, whose path the function gets as `weights`"
    )
    sha256: Checksum | None = Field(None, description="checksum of the file")
    parameters: Count | None = Field(None, description=PARAMETERS)


class Logits(Section):
    """Logits that you computed: no model is run and no torch is needed."""

    source: Literal["logits"]
    file: str | None = Field(
        None,
        description="one file for all views: Parquet or CSV with `image` (the ids of the index) "
        "and one column per class, or `.npy` [images, classes] with one id per line in a `.txt` "
        "of the same name",
    )
    files: Annotated[dict[str, str], Field(min_length=1)] | None = Field(
        None,
        description="one such file per view: `source`, `id` where the study has it, each target",
    )
    outputs: Outputs | None = Field(None, description="the columns of an array")
    probabilities: bool | None = Field(None, description=PROBABILITIES)
    parameters: Count | None = Field(None, description=PARAMETERS)


LoadBlock = Annotated[
    Train
    | Finetune
    | ProbeBlock
    | Timm
    | Checkpoint
    | Torchxrayvision
    | HuggingFace
    | Torchscript
    | Onnx
    | PythonFunction
    | Logits,
    Field(discriminator="source"),
]
