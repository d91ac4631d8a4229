"""`Pretrained`: loading, saving and checked batches for every model."""

import contextlib
import functools
import operator
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from bertbook import locations
from bertbook.batches import batching
from bertbook.batches.batching import without_lists
from bertbook.checks import is_integer
from bertbook.config import BertConfig, StoredConfig
from bertbook.files import (
    check_folder,
    finish_saving,
    write_together,
    write_whole,
)
from bertbook.locations import WEIGHT_FILES, WEIGHTS, holds_model
from bertbook.runtime import (
    choose_dtype,
    compile_with,
    is_concrete,
    keras,
    refuse_forked_process,
)
from bertbook.text.tokenizer import TOKENIZER_FILES
from bertbook.training.losses import loss_of_probabilities
from bertbook.training.several_steps import several_steps
from bertbook.weights import formats, lora, names
from bertbook.weights.export import export_model
from bertbook.weights.keras_config import (
    quantization_to_config,
    quantize_by_config,
    tokenizer_from_config,
    tokenizer_to_config,
)
from bertbook.weights.matrices import (
    SCALED,
    check_floats,
    check_merged,
    collecting_little,
    float_weights,
    tensor_name,
)
from bertbook.weights.names import thirds_of
from bertbook.weights.sentence_transformers import SENTENCE_FILES
from bertbook.weights.vocabulary import digest_entry, find_tokenizer


@dataclass
class LoadReport:
    """What a loader took, what it skipped and what it drew at random.

    Attributes:
        source: The folder or name that was read.
        layout: "Hugging Face", "Google", "KerasHub" or "bertbook".
        loaded: Our names of the tensors that were taken.
        skipped: Their names of the tensors that were not, with the reason.
        drawn: Our names of the tensors that the source lacks.
    """

    source: str
    layout: str
    loaded: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    drawn: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.source} ({self.layout}): {len(self.loaded)} tensors"]
        lines += [f"  skipped {n}: {why}" for n, why in self.skipped.items()]
        lines += [f"  drawn anew: {name}" for name in self.drawn]
        return "\n".join(lines)


KERAS_KEYWORDS = frozenset(
    ("name", "dtype", "trainable", "autocast", "activity_regularizer")
)
COUNT = "layer_count"  # in a file of Keras
NO_BATCHES = (bool, int, float, str, bytes, list, tuple)


class Pretrained:
    """Gives a model loading and saving, and a check of every batch.

    Comes before `keras.Model` among the bases of a model.
    """

    config_class: type[StoredConfig] = BertConfig
    input_names: tuple[str, ...] = (
        "input_ids",
        "token_type_ids",
        "attention_mask",
    )
    _input_rank = 2
    load_report = None
    tokenizer = None
    _finetuned_with = None  # a weak reference to the optimizer of `finetune`
    lora = None  # the settings of the adapters, after `add_lora`
    tokenizer_names: tuple[str, ...] = ("tokenizer",)

    def __init__(self, **kwargs):
        refuse_forked_process()
        unknown = sorted(kwargs.keys() - KERAS_KEYWORDS)
        if unknown:
            sizes = {one.name for one in fields(self.config_class)}
            of_config = [name for name in unknown if name in sizes]
            advice = (
                f"; `{of_config[0]}` is part of the model's config, and of the "
                "shapes of its weights"
                if of_config
                else ""
            )
            raise ValueError(
                f"`{type(self).__name__}` must be given keywords of its own, "
                f"or of `keras.Model`. Received: {', '.join(unknown)}{advice}."
            )
        super().__init__(**kwargs)
        if self.dtype_policy.quantization_mode is not None:
            raise ValueError(
                '`dtype` must be one of floats: `model.quantize("int8")` '
                f"quantizes a model. Received: {self.dtype_policy.name}."
            )
        # Keras lays a function over the method, which would answer first.
        self.__dict__.pop("quantize", None)

    def save_own_variables(self, store):
        """Writes how many layers the model has; for files of Keras.

        Args:
            store: What Keras writes to, a name and an array each.
        """
        super().save_own_variables(store)
        store[COUNT] = np.array(len(list(self._flatten_layers())))

    def load_own_variables(self, store):
        """Compares the number of layers in a file of Keras with the model's.

        Keras reads what the model has, and says nothing of what is left over.
        Files of version 0.1.0 lack the number.

        Args:
            store: What Keras has read, a name and an array each.

        Raises:
            ValueError: The file is of a model with more layers, or fewer.
        """
        names = set(store.keys())
        if COUNT in names:
            here = len(list(self._flatten_layers()))
            there = int(np.array(store[COUNT]))
            if here != there:
                raise ValueError(
                    "The weights must be those of a model with as many layers "
                    f"as its config says, {here} with all parts. Received: "
                    f"{there}."
                )
        super().load_own_variables({n: store[n] for n in names - {COUNT}})

    def __call__(self, batch, *args, **kwargs):
        """Checks a batch, then calls the model; see its `call`.

        Inside a compiled function only shapes are known, so that only shapes
        are checked there.

        Args:
            batch: A dict of arrays or tensors, as a tokenizer returns.
            *args: As in `call` of the model.
            **kwargs: As in `call` of the model.

        Returns:
            What `call` of the model returns.

        Raises:
            ValueError: The batch does not fit the config, as
                `batching.check_batch` says.
        """
        return super().__call__(self._checked(batch), *args, **kwargs)

    def fit(self, x=None, *args, **kwargs):
        """Checks `x` where it is no data set, then trains as Keras does.

        Returns:
            The `History` of Keras.

        Raises:
            ValueError: `x` does not fit the config, as `batching.check_batch`
                says.
        """
        self._warn_of_probabilities()
        if self.built and self.optimizer and not self.optimizer.built:
            # Made in the first step, its variables would cost a second trace.
            with self._variable_scope():
                self.optimizer.build(self.trainable_variables)
        return super().fit(self._checked_whole(x), *args, **kwargs)

    def _variable_scope(self):
        """Returns the scope of `tf.distribute` that the model was made in."""
        if keras.backend.backend() != "tensorflow":
            return contextlib.nullcontext()
        return self.distribute_strategy.scope()

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Learns the shapes of a batch of `tf.distribute`, from one replica.

        Keras on TensorFlow takes the mean over all replicas for it, which
        `MultiWorkerMirroredStrategy` cannot do with a dict.
        """
        strategy = getattr(self, "_distribute_strategy", None)
        if strategy is not None and iterator is not None:
            for _, _, batches in iterator:
                data_batch = keras.tree.map_structure(
                    lambda value: strategy.experimental_local_results(value)[0],
                    next(batches),
                )
                break
            iterator = None
        super()._maybe_symbolic_build(iterator, data_batch)

    def make_train_function(self, force=False):
        """Compiles a step, or on JAX all steps of a call together.

        Args:
            force: Whether to compile again what is compiled.
        """
        is_plain = self.steps_per_execution == 1 or self.run_eagerly
        if keras.backend.backend() != "jax" or is_plain:
            super().make_train_function(force)
        elif self.train_function is None or force:
            self.train_function = several_steps(self)

    def train_step(self, *arguments):
        """Takes a step, as Keras does.

        Returns:
            The logs of Keras.
        """
        return self._for_workers(super().train_step(*arguments))

    def test_step(self, *arguments):
        """Measures a batch, as Keras does.

        Returns:
            The logs of Keras.
        """
        return self._for_workers(super().test_step(*arguments))

    def _for_workers(self, logs):
        """Makes logs vectors of one number, of which workers take the mean.

        Keras takes the mean over axis 0 under `MultiWorkerMirroredStrategy`,
        which a scalar does not have.
        """
        if keras.backend.backend() != "tensorflow":
            return logs
        import tensorflow as tf

        workers = tf.distribute.MultiWorkerMirroredStrategy
        if not isinstance(self.distribute_strategy, workers):
            return logs
        return keras.tree.map_structure(lambda x: tf.reshape(x, [1]), logs)

    def evaluate(self, x=None, *args, **kwargs):
        """Checks `x` as `fit` does, then evaluates as Keras does.

        Returns:
            The loss and the metrics, as Keras returns them.

        Raises:
            ValueError: As in `fit`.
        """
        self._warn_of_probabilities()
        return super().evaluate(self._checked_whole(x), *args, **kwargs)

    def _warn_of_probabilities(self):
        """Warns of a loss that would take the logits for probabilities."""
        for loss in keras.tree.flatten(getattr(self, "loss", None)):
            name = loss_of_probabilities(loss)
            if name is not None:
                warnings.warn(
                    "`loss` takes probabilities, and the model returns "
                    f"logits: pass `keras.losses.{name}(from_logits=True)`.",
                    stacklevel=3,
                )

    def predict(self, x, *args, **kwargs):
        """Checks `x` as `fit` does, then predicts as Keras does.

        Returns:
            The outputs for all rows, as NumPy arrays.

        Raises:
            ValueError: As in `fit`.
        """
        return super().predict(self._checked_whole(x), *args, **kwargs)

    def __dir__(self):
        """Lists names for completion, but for what serves this package."""
        return [n for n in super().__dir__() if n != "compute_on_batch"]

    def compute_on_batch(self, batch):
        """Computes the outputs for a batch of NumPy arrays, as NumPy arrays.

        As `predict_on_batch`, but on TensorFlow one graph serves batches of
        every length.

        Args:
            batch: A dict of arrays or tensors, as a tokenizer returns.

        Returns:
            What calling the model returns, as NumPy arrays.

        Raises:
            ValueError: The batch does not fit the config.
        """
        batch = self._checked(batch)
        if keras.backend.backend() != "tensorflow":
            return self.predict_on_batch(batch)
        import tensorflow as tf

        signature = {
            name: tf.TensorSpec([None] * array.ndim, tf.as_dtype(array.dtype))
            for name, array in sorted(batch.items())
        }
        graphs = self._current_graphs()
        graph = graphs.get(str(signature))
        if graph is None:
            graph = graphs[str(signature)] = tf.function(
                lambda batch: self(batch, training=False),
                input_signature=[signature],
                jit_compile=self.jit_compile,
                autograph=False,
            ).get_concrete_function()
        return keras.tree.map_structure(lambda x: x.numpy(), graph(batch))

    def _compile_once(self, key, function):
        """Returns a function compiled, the first that came with this key.

        Args:
            key: What tells it from other functions; any further argument
                that it was made with is a part.
            function: As in `runtime.compile_with`.
        """
        graphs = self._current_graphs()
        if key not in graphs:
            graphs[key] = compile_with(self, function)
        return graphs[key]

    def _current_graphs(self):
        """Returns what was compiled with the variables of now, by its key.

        Quantizing a layer, or giving it adapters, makes other variables.
        """
        variables, kept = self.variables, self._graphs
        is_same = len(variables) == len(kept.variables) and all(
            map(operator.is_, variables, kept.variables)
        )
        if not is_same:
            kept.variables, kept.compiled = variables, {}
        return kept.compiled

    @functools.cached_property
    def _graphs(self):
        """Holds what was compiled, and the variables that it reads."""
        return SimpleNamespace(variables=[], compiled={})

    def _checked_whole(self, x):
        """Checks arrays before a compiled function hides their values."""
        is_none = x is None or isinstance(x, NO_BATCHES)
        is_batch = isinstance(x, Mapping) or hasattr(x, "shape")
        return self._checked(x) if is_batch or is_none else x

    def _checked(self, batch):
        """Returns a batch that fits the config, its lists made arrays.

        Args:
            batch: A dict of arrays or tensors, as a tokenizer returns.

        Raises:
            ValueError: It does not fit.
            RuntimeError: The process was forked after Keras was loaded.
        """
        refuse_forked_process()
        if not isinstance(batch, Mapping):
            raise ValueError(
                "`batch` must be a dict of arrays, as a tokenizer returns: "
                "`model.tokenizer(texts)`, or for a `tf.data.Dataset` of texts "
                "`map(model.tokenizer.as_map(max_length))`. "
                f"Received: {type(batch).__name__}."
            )
        batch = without_lists(batch)
        if all(is_concrete(array) for array in batch.values()):
            self._check_values({n: np.asarray(a) for n, a in batch.items()})
        else:
            self._check_shapes(batch)
        return batch

    def _check_values(self, arrays):
        """Refuses a batch of NumPy arrays that does not fit the config."""
        batching.check_batch(arrays, self.config)

    def _check_shapes(self, batch):
        """Refuses a batch by what is known of it in a compiled function."""
        if "input_ids" in batch:
            batching.check_shape(batch["input_ids"].shape, self.config)

    def quantize(self, mode=None, **options):
        """Quantizes every matrix that Keras can, as `keras.Model.quantize`.

        Layers without a matrix are as they were, and not warned of. `save`
        keeps what is quantized, in a .keras file; `save_pretrained` does not.

        Args:
            mode: "int8", "int4" or "float8", which leaves tables as they are.
            **options: As in `keras.Model.quantize`.

        Raises:
            ValueError: `mode` is another one, or the model has adapters or is
                quantized.
        """
        asked = mode or getattr(options.get("config"), "mode", None)
        if asked not in (*SCALED, "float8"):
            raise ValueError(
                '`mode` must be "int8", "int4" or "float8". Received: '
                f"{asked!r}."
            )
        check_merged(self)
        if options.get("filters") is None:  # else other layers may be
            check_floats(
                self,
                "`quantize` needs floats: load the model again for another "
                "mode.",
            )
        with collecting_little(), warnings.catch_warnings():
            without = "Layer .* does not have a `quantize` method implemented"
            warnings.filterwarnings("ignore", message=without)
            table = "Invalid quantization mode.* quantization_mode=float8"
            warnings.filterwarnings("ignore", message=table)
            super().quantize(mode, **options)

    def save(
        self,
        filepath,
        overwrite=True,
        zipped=None,
        include_optimizer=None,
        **options,
    ):
        """Writes a .keras file as `keras.Model.save`, whole or not at all.

        It keeps the tokenizer, and how layers are quantized; adapters become
        part of the weights. `keras.saving.load_model` reads it once the class
        is imported from bertbook.

        Args:
            filepath: The file, which ends in .keras.
            overwrite: As in `keras.Model.save`.
            zipped: As in `keras.Model.save`.
            include_optimizer: Whether to write the optimizer, which is twice
                as large as the model. None writes that of `compile`, and none
                that `finetune` has left.
            **options: As in `keras.Model.save`.

        Raises:
            ValueError: `filepath` has another end, or a quantized layer has
                adapters; an older file is as it was.
        """
        options |= {"overwrite": overwrite, "zipped": zipped}
        if include_optimizer is None:
            of_finetune = self._finetuned_with and self._finetuned_with()
            optimizer = getattr(self, "optimizer", None)
            include_optimizer = optimizer is None or optimizer != of_finetune
        is_file = str(filepath).endswith(".keras") and "://" not in str(
            filepath
        )
        with self._with_optimizer(include_optimizer):
            if not is_file or zipped is False or not overwrite:
                super().save(filepath, **options)
                return
            with write_whole(Path(filepath)) as part:
                super().save(part, **options)

    @contextlib.contextmanager
    def _with_optimizer(self, is_kept):
        """Takes the optimizer off in the body, unless it is to be kept."""
        optimizer, compiled = getattr(self, "optimizer", None), self.compiled
        if is_kept or optimizer is None:
            yield
            return
        self.optimizer, self.compiled = None, False
        try:
            yield
        finally:
            self.optimizer, self.compiled = optimizer, compiled

    def get_config(self):
        """Returns what Keras needs to build this model again.

        It holds the tokenizer and how layers are quantized, too, so that files
        and copies by Keras keep them.

        Raises:
            ValueError: A layer is quantized in a way that is not read, or has
                adapters too.
        """
        config = {**super().get_config(), "config": self.config.to_dict()}
        for name in self.tokenizer_names:
            tokenizer = getattr(self, name)
            if tokenizer is not None:
                config[name] = tokenizer_to_config(tokenizer)
        quantization = quantization_to_config(self)
        if quantization:
            config["quantization"] = quantization
        return config

    @classmethod
    def from_config(cls, config):
        """Builds the model that `get_config` describes.

        Args:
            config: The dict that `get_config` returns.

        Returns:
            A model of this class, its weights drawn anew.

        Raises:
            ValueError: It is no such dict.
        """
        if not isinstance(config, Mapping) or "config" not in config:
            raise ValueError(
                "`config` must be the dict that `get_config` returns. "
                f"Received: {config!r}."
            )
        config = dict(config)
        tokenizers = {
            name: tokenizer_from_config(config.pop(name))
            for name in cls.tokenizer_names
            if name in config
        }
        quantization = config.pop("quantization", {})
        config["config"] = cls.config_class.from_dict(config["config"])
        model = super().from_config(config)
        for name, tokenizer in tokenizers.items():
            setattr(model, name, tokenizer)
        quantize_by_config(model, quantization)
        return model

    def save_adapter(self, folder):
        """Writes adapter.safetensors: what `add_lora` lets learn.

        Args:
            folder: Made where it is missing.

        Raises:
            ValueError: The model has no adapters of `add_lora`, its frozen
                weights have changed, or a value is NaN or infinite.
            OSError: The disk is full, or `folder` cannot be written.
        """
        lora.save_adapter(self, folder)

    def load_adapter(self, folder):
        """Puts what `save_adapter` wrote into this model.

        It must have the weights that the adapter was trained on. Adapters are
        added where it has none. Names of labels come with the adapter.

        Args:
            folder: The folder that `save_adapter` wrote.

        Raises:
            FileNotFoundError: There is no adapter.
            ValueError: It is damaged, or belongs to another model.
        """
        lora.load_adapter(self, folder)

    def export(
        self,
        filepath,
        format="tf_saved_model",
        verbose=None,
        input_signature=None,
        **options,
    ):
        """Writes a graph that runs without this package.

        It takes the batch of a tokenizer, of any number of rows and any
        length, and gives what calling the model gives. ONNX and LiteRT compute
        in float32, whatever the model computes in.

        Args:
            filepath: A folder for a SavedModel; a file for "onnx"; a file that
                ends in .tflite for "litert".
            format: "tf_saved_model", "onnx" (needs tf2onnx) or "litert".
            verbose: Whether to print where it was written; None for Keras'
                default.
            input_signature: As in `keras.Model.export`, for other inputs. None
                takes `input_names`, int32 of shape `(None, None)`.
            **options: As in `keras.Model.export`.

        Raises:
            ValueError: `format` is unknown, does not fit `filepath`, or cannot
                hold a layer of the model; or the backend is not TensorFlow.
            ImportError: What writes the format is not installed.
        """
        export_model(
            self, filepath, format, verbose, input_signature, **options
        )

    @classmethod
    def from_pretrained(cls, name_or_dir, *, revision=None, **options):
        """Builds a model with the weights of a published or saved one.

        Args:
            name_or_dir: A shipped name, a folder in the layout of Hugging
                Face, Google or KerasHub, "hf://org/name", "keras://preset", or
                a KerasHub `BertBackbone`. A folder that another process is
                saving into is read when that is done.
            revision: Of a model of the Hub: a branch, a tag or a commit.
            **options: Keywords of the model, for example `dtype`; there "auto"
                is what `runtime.choose_dtype` says. A rate of dropout by its
                name in the config, one of `RATES`, takes the place of the
                stored one.

        Returns:
            A model of this class. Its `load_report` names the tensors that were
            taken, skipped and drawn anew; its `tokenizer` is the one beside the
            weights, or None.

        Raises:
            FileNotFoundError: There is no such model; the forms are listed.
            ValueError: A tensor of the encoder is missing, has another shape
                or holds NaN or infinity; all such tensors are named.
            ImportError: What reads the layout, or the Hub, is not installed.
        """
        if options.get("dtype") == "auto":
            options["dtype"] = choose_dtype().path
        name_or_dir = locations.at_revision(name_or_dir, revision)
        with locations.reading(name_or_dir):
            checkpoint = cls._read(name_or_dir)
            options = _set_rates(checkpoint, options)
            model = cls._from_checkpoint(checkpoint, options)
            _leave_other_sizes(checkpoint, model)
            model.load_report = _fill(model, checkpoint, str(name_or_dir))
            model._find_tokenizers(checkpoint)
        return model

    @classmethod
    def _read(cls, name_or_dir):
        """Reads the checkpoint, without heads that this model cannot have."""
        checkpoint = formats.read_checkpoint(name_or_dir)
        _leave_other_heads(checkpoint, cls.architecture)
        return checkpoint

    def _find_tokenizers(self, checkpoint):
        """Takes the tokenizer beside the weights, where there is one."""
        self.tokenizer = find_tokenizer(checkpoint)

    @classmethod
    def _from_checkpoint(cls, checkpoint, options):
        """Returns a model of the config of a file, its weights drawn anew."""
        try:
            filled = cls._options(checkpoint, options)
            return cls(checkpoint.config, **filled)
        except ValueError as error:
            if options or checkpoint.folder is None:
                raise
            path = formats.config_path(checkpoint)
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def _options(cls, checkpoint, options):
        """Returns the keywords of the model, with what the file knows."""
        return options

    def save_pretrained(self, folder, dtype="float32", max_shard_bytes=None):
        """Writes config.json, model.safetensors and the tokenizer's files.

        They take effect together: at any moment the folder holds the old
        model or the new one. Files of an older model that the new one does
        not have are removed; what is a user's own stays. What adapters add
        becomes part of the matrices. An encoder from a folder of
        sentence-transformers also gets the files by which that library makes
        the same vectors.

        Args:
            folder: Made where it is missing.
            dtype: "float32", or "float16" for half the size.
            max_shard_bytes: Most bytes of tensors a file; above it the
                weights go into several files with an index.

        Raises:
            ValueError: An argument has an unknown value, or weights are NaN,
                infinite or too large for `dtype`; all are named. The model is
                quantized; the message says what keeps it. Or a link leads out
                of `folder`.
            OSError: The disk is full, or `folder` cannot be written.
        """
        folder = check_folder(folder)
        check_floats(
            self,
            "`save_pretrained` writes floats, as other libraries read them: "
            '`model.save("small.keras")` keeps a quantized model.',
        )
        _check_stored_dtype(dtype)
        _check_shard_bytes(max_shard_bytes)
        arrays = _stored(named_tensors(self), dtype)
        finish_saving(folder)  # what is there decides what is replaced
        extra = {**self.config.extra, "architectures": [self.architecture]}
        extra.pop("torch_dtype", None)  # an older name of the same
        config = self.config.replace(extra={**extra, "dtype": dtype})
        with write_together(folder, self._replaced(folder), WEIGHTS) as new:
            self._save_tokenizers(new)
            self._write(new, config, arrays, max_shard_bytes, self._metadata())

    def _replaced(self, folder):
        """Returns the names of an older model's files in a folder.

        A tokenizer beside no weights is nobody's yet: it stays.
        """
        if not holds_model(folder):
            return (*WEIGHT_FILES, *SENTENCE_FILES)
        old = [name for name in TOKENIZER_FILES if (folder / name).is_file()]
        if self.tokenizer is None and old:
            warnings.warn(
                f"{folder}: the new model has no tokenizer, so that of the old "
                f"one is removed: {', '.join(old)}.",
                stacklevel=3,
            )
        # A translator has a second tokenizer in a sub-folder.
        second = [f"target/{name}" for name in TOKENIZER_FILES]
        return (*WEIGHT_FILES, *SENTENCE_FILES, *TOKENIZER_FILES, *second)

    def _save_tokenizers(self, folder):
        """Writes the files of every tokenizer of the model."""
        if self.tokenizer is not None:
            limit = self.config.max_position_embeddings
            self.tokenizer.write_files(folder, limit)

    def _metadata(self):
        """Returns what the header of the weights says beside the tensors."""
        return {} if self.tokenizer is None else digest_entry(self.tokenizer)

    def _write(self, folder, config, arrays, *options):
        """Writes the config and the tensors under the names of others."""
        formats.write_hugging_face(
            folder, config, arrays, self._weight_prefix, *options
        )


# Fields of a config that change no tensor and no result of a trained model.
RATES = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "classifier_dropout",  # of a task's head, kept in `extra`
)


def _set_rates(checkpoint, options):
    """Puts rates among the keywords into the config; returns the others."""
    rates = {name: options[name] for name in RATES if name in options}
    fields = {n: rate for n, rate in rates.items() if hasattr(BertConfig, n)}
    more = {n: rate for n, rate in rates.items() if n not in fields}
    if more:
        fields["extra"] = {**checkpoint.config.extra, **more}
    checkpoint.config = checkpoint.config.replace(**fields)
    return {n: value for n, value in options.items() if n not in rates}


def _check_stored_dtype(dtype):
    """Refuses a number format that weights are not written in."""
    if not isinstance(dtype, str) or dtype not in ("float32", "float16"):
        raise ValueError(
            f'`dtype` must be "float32" or "float16". Received: {dtype!r}.'
        )


def _check_shard_bytes(max_shard_bytes):
    """Refuses a size of shards that is no positive number of bytes."""
    if max_shard_bytes is None:
        return
    if not is_integer(max_shard_bytes) or max_shard_bytes < 1:
        raise ValueError(
            "`max_shard_bytes` must be an integer >= 1, or None. Received: "
            f"{max_shard_bytes!r}."
        )


NAMED_AT_MOST = 8  # tensors in one message


def _stored(tensors, dtype):
    """Returns tensors as arrays in the format to be written.

    Raises:
        ValueError: Some hold NaN or infinity, or a value that does not fit.
    """
    arrays = {
        name: keras.ops.convert_to_numpy(tensor).astype("float32")
        for name, tensor in tensors.items()
    }
    broken = [n for n, array in arrays.items() if not np.isfinite(array).all()]
    if broken:
        shown = ", ".join(broken[:NAMED_AT_MOST])
        more = len(broken) - NAMED_AT_MOST
        raise ValueError(
            "Weights to be saved must be finite. Received: NaN or infinity in "
            f"{shown}{f' and {more} more tensors' if more > 0 else ''}."
        )
    limit = np.finfo(dtype).max
    for name, array in arrays.items():
        largest = np.abs(array).max(initial=0.0)
        if largest > limit:
            raise ValueError(
                f'`dtype="{dtype}"` must hold every value. Received: {largest} '
                f"in {name}."
            )
    return {name: array.astype(dtype) for name, array in arrays.items()}


def named_tensors(model):
    """Returns every tensor of a model under our names, query, key, value apart.

    The names are paths of weights without the model's own name. A matrix that
    is quantized, or has adapters, comes as the floats that it stands for.

    Raises:
        ValueError: A matrix is quantized in a way that is not read.
    """
    tensors = {}
    for weight, value in float_weights(model):
        name = tensor_name(weight)
        thirds = thirds_of(name)
        if thirds:
            parts = keras.ops.split(value, 3, axis=-1)
            tensors |= zip(thirds, parts, strict=True)
        else:
            tensors[name] = value
    return tensors


TASK_TENSORS = [n.bertbook for rows in names.TASK_HEADS.values() for n in rows]
OF_A_TASK = (
    "label2id",
    "num_labels",
    "label_thresholds",
    "problem_type",
    "no_answer_threshold",
    "tag_strategy",
    "bertbook_finetuning",
)


def _leave_other_heads(checkpoint, architecture):
    """Skips the head of another task, and what the config says about it.

    Three tasks call their head `classifier`; only `architectures` tells them
    apart.
    """
    architectures = checkpoint.config.extra.get("architectures") or [
        architecture
    ]
    if architecture in architectures:
        return
    checkpoint.leave_out(TASK_TENSORS, f"belongs to {architectures[0]}")
    extra = checkpoint.config.extra
    checkpoint.config = checkpoint.config.replace(
        id2label=None,
        extra={k: v for k, v in extra.items() if k not in OF_A_TASK},
    )


def _leave_other_sizes(checkpoint, model):
    """Skips a head that has another number of labels than the model."""
    stored = checkpoint.arrays.get("classifier/bias")
    bias = named_tensors(model).get("classifier/bias")
    if stored is None or bias is None or stored.size == bias.shape[0]:
        return
    checkpoint.leave_out(
        TASK_TENSORS, f"has {stored.size} labels, not {bias.shape[0]}"
    )


def _fill(model, checkpoint, source):
    """Copies the tensors of a checkpoint into a model, and says which.

    Raises:
        ValueError: A tensor is missing, has another shape, or holds NaN or
            infinity.
    """
    report = LoadReport(
        source, checkpoint.layout, skipped=dict(checkpoint.skipped)
    )
    shapes = {n: tuple(t.shape) for n, t in named_tensors(model).items()}
    _check_arrays(shapes, checkpoint, source)
    report.loaded = [name for name in shapes if name in checkpoint.arrays]
    report.drawn = [name for name in shapes if name not in checkpoint.arrays]
    report.skipped |= {
        checkpoint.stored_names[name]: "belongs to a part that this model "
        "does not have"
        for name in checkpoint.arrays
        if name not in shapes
    }
    assign_arrays(model, checkpoint.arrays)
    return report


def assign_arrays(model, arrays):
    """Assigns arrays to the weights of a model, by our names.

    Query, key and value come apart and become one matrix. A weight whose name
    is not among them stays as it is.

    Args:
        model: A model that is built.
        arrays: Our names to NumPy arrays, matrices as (in, out).

    Raises:
        ValueError: An array has another shape than the weight.
    """
    for weight in model.weights:
        name = tensor_name(weight)
        parts = [arrays[n] for n in thirds_of(name) if n in arrays]
        if parts:
            weight.assign(np.concatenate(parts, axis=-1))
        elif name in arrays:
            weight.assign(arrays[name])


def _check_arrays(shapes, checkpoint, source):
    """Raises one error that names every tensor that cannot be used."""
    arrays = checkpoint.arrays
    optional = set()
    heads = (*names.HEADS.values(), *names.TASK_HEADS.values())
    for rows in (names.POOLER, *heads):
        part = {row.bertbook for row in rows}
        if not part & arrays.keys():
            optional |= part  # a pooler or a head is there whole, or not
    problems = [
        f"{name} is missing"
        for name in shapes
        if name not in arrays and name not in optional
    ]
    problems += [
        f"{name} has shape {arrays[name].shape}, not {shape}"
        for name, shape in shapes.items()
        if name in arrays and arrays[name].shape != shape
    ]
    problems += [
        f"{name} holds NaN or infinity"
        for name in shapes
        if name in arrays and not np.isfinite(arrays[name]).all()
    ]
    problems += [
        f"{name} does not belong to a model of this config"
        for name in _unknown_tensors(shapes, checkpoint)
    ]
    if problems:
        raise ValueError(
            f"{source} does not fit its config: {'; '.join(problems)}."
        )


def _unknown_tensors(shapes, checkpoint):
    """Returns stored names of tensors that no model of the config has.

    A folder in our own layout holds one model, and nothing beside it.
    """
    unknown = [n for n, why in checkpoint.skipped.items() if why == "unknown"]
    if checkpoint.layout == "bertbook":
        names = checkpoint.stored_names.items()
        unknown += [
            stored_name for name, stored_name in names if name not in shapes
        ]
    return unknown
