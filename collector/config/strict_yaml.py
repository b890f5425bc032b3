"""YAML as people mean it: a key that stands twice in one mapping is an error, not the last wins."""

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """The safe loader, which would otherwise keep the last of two equal keys."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        # While it is composed, merge keys are not resolved yet: to override what was merged in is
        # what they are for.
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise yaml.composer.ComposerError(
                        None, None, f"the key {key.value!r} stands there twice", key.start_mark
                    )
                seen.add((key.tag, key.value))
        return node


def load(text: str) -> Any:
    """The content of one YAML document.

    Raises:
        yaml.YAMLError: It is not YAML, or a mapping has a key twice.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of the safe loader
    except (ValueError, RecursionError) as error:  # a date that there is none; a thousand brackets
        raise yaml.YAMLError(str(error)) from error
