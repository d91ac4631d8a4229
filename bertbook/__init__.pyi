"""Types of the public names, for checkers and editors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import (
    Any,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    TypedDict,
    Unpack,
    overload,
)

import numpy as np
from numpy.typing import NDArray

from bertbook.config import BertConfig as BertConfig
from bertbook.datasets.load import load_dataset as load_dataset
from bertbook.datasets.own_files import train_dev_split as train_dev_split
from bertbook.decoder.config import CausalLMConfig as CausalLMConfig
from bertbook.decoder.config import Seq2SeqConfig as Seq2SeqConfig
from bertbook.finetuning.finetune import FinetuningOptions as FinetuningOptions
from bertbook.finetuning.report import Report
from bertbook.pretraining.corpus import Corpus
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.pretrain import PretrainingRecipe as PretrainingRecipe
from bertbook.pretraining.pretrain import Reporting as PretrainingReporting
from bertbook.runtime import setup as setup
from bertbook.text.tokenizer import Encoding as Encoding
from bertbook.text.tokenizer import Tokenizer as Tokenizer
from bertbook.translation.train import Recipe as TranslationRecipe
from bertbook.translation.train import Reporting as TranslationReporting

__version__: str
__all__: list[str]

Folder: TypeAlias = str | PathLike[str]
Batch: TypeAlias = Mapping[str, Any]
Columns: TypeAlias = Mapping[str, Sequence[Any]]
Tensor: TypeAlias = Any
Dtype: TypeAlias = str

class _Array(Protocol):
    """An array of NumPy, or a column of a data frame."""

    def __len__(self) -> int: ...
    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...

class _Frame(Protocol):
    """A data frame of pandas or Polars."""

    @property
    def columns(self) -> Any: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...

class _HubDataset(Protocol):
    """A `Dataset` of Hugging Face, or a table of Arrow."""

    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...

Table: TypeAlias = (
    Mapping[str, Sequence[Any] | _Array]
    | Sequence[Mapping[str, Any]]
    | _Frame
    | _HubDataset
)
Texts: TypeAlias = Sequence[str] | _Array
Metric: TypeAlias = Callable[[Any, Any], Any]
Metrics: TypeAlias = (
    str | Metric | Sequence[str | Metric] | Mapping[str, Metric]
)

class AttentionPath(NamedTuple):
    path: str
    backend: str
    device: str
    why: str

class LoadReport:
    source: str
    layout: str
    loaded: list[str]
    skipped: dict[str, str]
    drawn: list[str]

class TrainedParameters(NamedTuple):
    trained: int
    total: int

class LoraSettings(NamedTuple):
    rank: int
    alpha: float
    layers: tuple[str, ...]
    base: str

class _Rates(TypedDict, total=False):
    """Rates of dropout that take the place of the stored ones."""

    hidden_dropout_prob: float
    attention_probs_dropout_prob: float
    classifier_dropout: float

class _Model:
    """What the models take from `keras.Model`; a model is one."""

    name: str
    trainable: bool
    tokenizer: Tokenizer  # or None, which only a caller can know
    load_report: LoadReport | None
    lora: LoraSettings | None
    stop_training: bool
    compiled: bool
    input_spec: Any
    supports_masking: bool
    @property
    def path(self) -> str: ...
    @property
    def layers(self) -> list[Any]: ...
    @property
    def weights(self) -> list[Any]: ...
    @property
    def variables(self) -> list[Any]: ...
    @property
    def trainable_weights(self) -> list[Any]: ...
    @property
    def trainable_variables(self) -> list[Any]: ...
    @property
    def non_trainable_weights(self) -> list[Any]: ...
    @property
    def metrics(self) -> list[Any]: ...
    @property
    def optimizer(self) -> Any: ...
    @property
    def non_trainable_variables(self) -> list[Any]: ...
    @property
    def metrics_names(self) -> list[str]: ...
    @property
    def metrics_variables(self) -> list[Any]: ...
    @property
    def losses(self) -> list[Any]: ...
    @property
    def loss(self) -> Any: ...
    @property
    def jit_compile(self) -> bool: ...
    @property
    def run_eagerly(self) -> bool: ...
    @property
    def distribute_strategy(self) -> Any: ...
    @property
    def quantization_mode(self) -> str | None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def variable_dtype(self) -> str: ...
    @property
    def dtype_policy(self) -> Any: ...
    @property
    def compute_dtype(self) -> str: ...
    @property
    def built(self) -> bool: ...
    def build(self, input_shape: Any = ...) -> None: ...
    def call(self, *args: Any, **kwargs: Any) -> Any: ...
    def compile(
        self,
        optimizer: Any = ...,
        loss: Any = ...,
        loss_weights: Any = ...,
        metrics: Any = ...,
        weighted_metrics: Any = ...,
        run_eagerly: bool = ...,
        steps_per_execution: int = ...,
        jit_compile: bool | Literal["auto"] = ...,
        auto_scale_loss: bool = ...,
    ) -> None: ...
    def fit(
        self,
        x: Any = ...,
        y: Any = ...,
        batch_size: int | None = ...,
        epochs: int = ...,
        verbose: Literal["auto"] | int = ...,
        callbacks: Any = ...,
        validation_split: float = ...,
        validation_data: Any = ...,
        shuffle: bool = ...,
        class_weight: Mapping[int, float] | None = ...,
        sample_weight: Any = ...,
        initial_epoch: int = ...,
        steps_per_epoch: int | None = ...,
        validation_steps: int | None = ...,
        validation_batch_size: int | None = ...,
        validation_freq: int = ...,
    ) -> Any: ...
    def evaluate(
        self,
        x: Any = ...,
        y: Any = ...,
        batch_size: int | None = ...,
        verbose: Literal["auto"] | int = ...,
        sample_weight: Any = ...,
        steps: int | None = ...,
        callbacks: Any = ...,
        return_dict: bool = ...,
    ) -> Any: ...
    def predict(
        self,
        x: Any,
        batch_size: int | None = ...,
        verbose: Literal["auto"] | int = ...,
        steps: int | None = ...,
        callbacks: Any = ...,
    ) -> Any: ...
    def train_on_batch(
        self,
        x: Any,
        y: Any = ...,
        sample_weight: Any = ...,
        class_weight: Mapping[int, float] | None = ...,
        return_dict: bool = ...,
    ) -> Any: ...
    def test_on_batch(
        self,
        x: Any,
        y: Any = ...,
        sample_weight: Any = ...,
        return_dict: bool = ...,
    ) -> Any: ...
    def predict_on_batch(self, x: Any) -> Any: ...
    def compute_on_batch(self, batch: Batch) -> Any: ...
    def train_step(self, data: Any) -> Any: ...
    def test_step(self, data: Any) -> Any: ...
    def predict_step(self, data: Any) -> Any: ...
    def make_train_function(self, force: bool = ...) -> Any: ...
    def make_test_function(self, force: bool = ...) -> Any: ...
    def make_predict_function(self, force: bool = ...) -> Any: ...
    def compute_loss(
        self,
        x: Any = ...,
        y: Any = ...,
        y_pred: Any = ...,
        sample_weight: Any = ...,
        training: bool = ...,
    ) -> Any: ...
    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = ...
    ) -> Any: ...
    def get_metrics_result(self) -> dict[str, Any]: ...
    def reset_metrics(self) -> None: ...
    def add_loss(self, loss: Any) -> None: ...
    def add_weight(self, *args: Any, **kwargs: Any) -> Any: ...
    def stateless_call(
        self,
        trainable_variables: Any,
        non_trainable_variables: Any,
        *args: Any,
        return_losses: bool = ...,
        **kwargs: Any,
    ) -> Any: ...
    def stateless_compute_loss(
        self,
        trainable_variables: Any,
        non_trainable_variables: Any,
        metrics_variables: Any,
        x: Any = ...,
        y: Any = ...,
        y_pred: Any = ...,
        sample_weight: Any = ...,
        training: bool = ...,
    ) -> Any: ...
    def get_state_tree(self, value_format: str = ...) -> dict[str, Any]: ...
    def set_state_tree(self, state_tree: Mapping[str, Any]) -> None: ...
    def compute_output_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any: ...
    def symbolic_call(self, *args: Any, **kwargs: Any) -> Any: ...
    def to_json(self, **kwargs: Any) -> str: ...
    def get_compile_config(self) -> dict[str, Any] | None: ...
    def compile_from_config(self, config: Mapping[str, Any]) -> None: ...
    def get_build_config(self) -> dict[str, Any] | None: ...
    def build_from_config(self, config: Mapping[str, Any]) -> None: ...
    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self: ...
    def summary(self, **kwargs: Any) -> None: ...
    def count_params(self) -> int: ...
    def get_config(self) -> dict[str, Any]: ...
    def get_layer(
        self, name: str | None = ..., index: int | None = ...
    ) -> Any: ...
    def get_weights(self) -> list[NDArray[Any]]: ...
    def set_weights(self, weights: Sequence[Any]) -> None: ...
    def save(
        self,
        filepath: Folder,
        overwrite: bool = ...,
        zipped: bool | None = None,
        include_optimizer: bool | None = None,
        **options: Any,
    ) -> None: ...
    def save_weights(
        self, filepath: Folder, overwrite: bool = ..., **kwargs: Any
    ) -> None: ...
    def load_weights(self, filepath: Folder, **kwargs: Any) -> None: ...
    def export(
        self,
        filepath: Folder,
        format: Literal["tf_saved_model", "onnx", "litert"] = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        **options: Any,
    ) -> None: ...
    def save_adapter(self, folder: Folder) -> None: ...
    def load_adapter(self, folder: Folder) -> None: ...
    def quantize(self, mode: str | None = ..., **kwargs: Any) -> None: ...
    def save_pretrained(
        self,
        folder: Folder,
        dtype: str = "float32",
        max_shard_bytes: int | None = None,
    ) -> None: ...

class BertEncoder(_Model):
    config: BertConfig
    embeddings: Any
    blocks: list[Any]
    pooler: Any
    def __init__(
        self,
        config: BertConfig,
        attention: str = "auto",
        pooler: bool = True,
        *,
        dtype: Dtype | None = ...,
        name: str | None = ...,
    ) -> None: ...
    @classmethod
    def from_pretrained(
        cls,
        name_or_dir: Any,
        *,
        revision: str | None = None,
        attention: str = ...,
        pooler: bool = ...,
        dtype: Dtype | None = ...,
        name: str | None = ...,
        **rates: Unpack[_Rates],
    ) -> Self: ...
    def __call__(
        self,
        batch: Batch,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        positions: Tensor | None = None,
        training: bool | None = None,
    ) -> dict[str, Any]: ...
    def embed_texts(
        self,
        texts: Texts,
        pooling: Literal["mean", "cls", "max"] | None = None,
        max_length: int | None = None,
        batch_size: int = 32,
        *,
        verbose: bool = False,
    ) -> NDArray[np.float32]: ...

class _BertWithHead(_Model):
    config: BertConfig
    encoder: BertEncoder
    def __init__(
        self,
        config: BertConfig,
        attention: str = "auto",
        *,
        dtype: Dtype | None = ...,
        name: str | None = ...,
    ) -> None: ...
    @classmethod
    def from_pretrained(
        cls,
        name_or_dir: Any,
        *,
        revision: str | None = None,
        attention: str = ...,
        dtype: Dtype | None = ...,
        name: str | None = ...,
        **rates: Unpack[_Rates],
    ) -> Self: ...

class BertForMaskedLM(_BertWithHead):
    def __call__(
        self, batch: Batch, training: bool | None = None
    ) -> Tensor: ...

class BertForPreTraining(_BertWithHead):
    def __call__(
        self, batch: Batch, training: bool | None = None
    ) -> dict[str, Tensor]: ...

class BertForQuestionAnswering(_BertWithHead):
    @property
    def no_answer_threshold(self) -> float | None: ...
    def __call__(
        self, batch: Batch, training: bool | None = None
    ) -> dict[str, Tensor]: ...
    def predict_answers(
        self,
        questions: Texts,
        contexts: Texts,
        max_length: int | None = None,
        stride: int | None = None,
        max_answer_length: int = 30,
        batch_size: int = 32,
        *,
        verbose: bool = False,
    ) -> list[dict[str, Any]]: ...

class BertForMultipleChoice(_BertWithHead):
    def __call__(
        self, batch: Batch, training: bool | None = None
    ) -> Tensor: ...
    def predict_choices(
        self,
        texts: Texts,
        choices: Sequence[Sequence[str]] | _Array,
        max_length: int | None = None,
        batch_size: int = 8,
        *,
        all_scores: bool = False,
        verbose: bool = False,
    ) -> list[dict[str, Any]]: ...

class _BertWithLabels(_Model):
    config: BertConfig
    encoder: BertEncoder
    num_labels: int
    classifier: Any
    def __call__(
        self, batch: Batch, training: bool | None = None
    ) -> Tensor: ...

class BertForSequenceClassification(_BertWithLabels):
    problem_type: str
    @property
    def label_thresholds(self) -> list[float] | None: ...
    @label_thresholds.setter
    def label_thresholds(self, thresholds: Sequence[float] | None) -> None: ...
    def __init__(
        self,
        config: BertConfig,
        num_labels: int | None = None,
        id2label: Mapping[int, str] | None = None,
        problem_type: str | None = None,
        attention: str = "auto",
        *,
        dtype: Dtype | None = ...,
        name: str | None = ...,
    ) -> None: ...
    @classmethod
    def from_pretrained(
        cls,
        name_or_dir: Any,
        *,
        revision: str | None = None,
        num_labels: int | None = ...,
        id2label: Mapping[int, str] | None = ...,
        problem_type: str | None = ...,
        attention: str = ...,
        dtype: Dtype | None = ...,
        name: str | None = ...,
        **rates: Unpack[_Rates],
    ) -> Self: ...
    def predict_texts(
        self,
        texts: Texts,
        pairs: Texts | None = None,
        max_length: int | None = None,
        batch_size: int = 32,
        *,
        all_scores: bool = False,
        verbose: bool = False,
    ) -> list[dict[str, Any]]: ...

class BertForTokenClassification(_BertWithLabels):
    def __init__(
        self,
        config: BertConfig,
        num_labels: int | None = None,
        id2label: Mapping[int, str] | None = None,
        attention: str = "auto",
        *,
        dtype: Dtype | None = ...,
        name: str | None = ...,
    ) -> None: ...
    @classmethod
    def from_pretrained(
        cls,
        name_or_dir: Any,
        *,
        revision: str | None = None,
        num_labels: int | None = ...,
        id2label: Mapping[int, str] | None = ...,
        attention: str = ...,
        dtype: Dtype | None = ...,
        name: str | None = ...,
        **rates: Unpack[_Rates],
    ) -> Self: ...
    def predict_tags(
        self,
        tokens: Iterable[Iterable[str]],
        max_length: int | None = None,
        batch_size: int = 32,
        *,
        verbose: bool = False,
    ) -> list[list[str]]: ...
    def predict_entities(
        self,
        texts: Texts,
        max_length: int | None = None,
        batch_size: int = 32,
        *,
        verbose: bool = False,
    ) -> list[list[dict[str, Any]]]: ...

class CausalLM(_Model):
    config: CausalLMConfig
    def __init__(
        self,
        config: CausalLMConfig,
        *,
        dtype: Dtype | None = ...,
        name: str | None = ...,
    ) -> None: ...
    @classmethod
    def from_pretrained(
        cls,
        name_or_dir: Folder,
        *,
        revision: str | None = None,
        dtype: Dtype | None = ...,
        name: str | None = ...,
    ) -> Self: ...
    def __call__(
        self,
        batch: Batch,
        positions: Tensor | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        training: bool | None = None,
    ) -> Any: ...

class Seq2SeqTransformer(_Model):
    config: Seq2SeqConfig
    target_tokenizer: Tokenizer
    def __init__(
        self,
        config: Seq2SeqConfig,
        *,
        dtype: Dtype | None = ...,
        name: str | None = ...,
    ) -> None: ...
    @classmethod
    def from_pretrained(
        cls,
        name_or_dir: Folder,
        *,
        revision: str | None = None,
        dtype: Dtype | None = ...,
        name: str | None = ...,
    ) -> Self: ...
    def __call__(
        self,
        batch: Batch,
        positions: Tensor | None = None,
        output_attentions: bool = False,
        training: bool | None = None,
    ) -> Any: ...

class _View:
    @property
    def png(self) -> bytes: ...
    def to_html(self) -> str: ...

class AttentionViewer(_View):
    def __init__(
        self,
        tokens: Sequence[str],
        attentions: Any,
        title: str = "",
        *,
        layers: Iterable[int] | None = None,
    ) -> None: ...
    @classmethod
    def from_text(
        cls,
        encoder: BertEncoder | _BertWithHead | _BertWithLabels,
        text: str,
        pair: str | None = None,
        layers: Iterable[int] | None = None,
        title: str = "",
    ) -> Self: ...

class SimilarityViewer(_View):
    def __init__(
        self,
        tokens_a: Sequence[str],
        vectors_a: Any,
        tokens_b: Sequence[str],
        vectors_b: Any,
        title: str = "",
    ) -> None: ...
    @classmethod
    def from_texts(
        cls,
        encoder: BertEncoder | _BertWithHead | _BertWithLabels,
        text_a: str,
        text_b: str,
        layer: int = -1,
        title: str = "",
    ) -> Self: ...

_TaskModel: TypeAlias = (
    BertForSequenceClassification
    | BertForTokenClassification
    | BertForQuestionAnswering
    | BertForMultipleChoice
)

def add_lora(
    model: _Model,
    rank: int = 8,
    alpha: float | None = None,
    layers: Sequence[str] = ...,
) -> TrainedParameters: ...
def attention_path(
    model: BertEncoder | _BertWithHead | _BertWithLabels,
) -> AttentionPath: ...
@overload
def evaluate(
    model: _TaskModel,
    data: Table,
    max_length: int | None = None,
    batch_size: int = 32,
    stride: int | None = None,
    *,
    metrics: Metrics | None = None,
    report: Literal[False] = False,
) -> dict[str, float]: ...
@overload
def evaluate(
    model: _TaskModel,
    data: Table,
    max_length: int | None = None,
    batch_size: int = 32,
    stride: int | None = None,
    *,
    metrics: Metrics | None = None,
    report: Literal[True],
) -> Report: ...
def fill_mask(
    text: str,
    model: Folder | BertForMaskedLM | BertForPreTraining = "mini",
    top_k: int = 5,
) -> list[dict[str, Any]]: ...
def finetune(
    model: _TaskModel,
    train: Table,
    dev: Table | Mapping[str, Table] | None = None,
    epochs: int = 3,
    learning_rate: float | None = None,
    batch_size: int = 32,
    max_length: int | None = None,
    seed: int = 0,
    out: Folder | None = None,
    options: FinetuningOptions | None = None,
    *,
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
    callbacks: Any = None,
    metrics: Metrics | None = None,
) -> dict[str, list[Any]]: ...
def generate(
    model: CausalLM | Seq2SeqTransformer,
    texts: Sequence[str],
    max_length: int = 64,
    search: Literal["greedy", "sample", "beams"] = "greedy",
    batch_size: int = 32,
    *,
    seed: int | Sequence[int] = ...,
    temperature: float = ...,
    top_k: int | None = ...,
    top_p: float | None = ...,
    beam_width: int = ...,
    length_penalty: float = ...,
    use_cache: bool = ...,
) -> list[str]: ...
def merge_lora(model: _Model) -> None: ...
def join_processes(
    coordinator: str | None = None,
    processes: int | None = None,
    process_id: int | None = None,
) -> None: ...
def pretrain(
    corpus: Iterable[Folder] | Corpus,
    out: Folder,
    recipe: PretrainingRecipe,
    model: str | PathLike[str] | BertConfig = "tiny",
    tokenizer: Folder | Tokenizer | int = "mini",
    examples: ExampleSettings | None = None,
    held_out: float = 0.01,
    workers: int = 0,
    data_parallel: bool = False,
    reporting: PretrainingReporting | None = None,
    evaluate: Callable[[BertForPreTraining], Mapping[str, float]] | None = None,
    model_parallel: int = 1,
    steps_per_execution: int = 1,
) -> BertForPreTraining: ...
def train_translation(
    train: Columns,
    out: Folder,
    recipe: TranslationRecipe | None = None,
    dev: Columns | None = None,
    config: Seq2SeqConfig | None = None,
    lowercase: bool = False,
    reporting: TranslationReporting | None = None,
) -> Seq2SeqTransformer: ...
def translate(
    model: Folder | Seq2SeqTransformer,
    texts: Sequence[str],
    max_length: int | None = None,
    search: Literal["greedy", "sample", "beams"] = "beams",
    **options: Any,
) -> list[str]: ...
