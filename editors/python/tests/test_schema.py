"""The types of this client say what the protocol's schema says."""

import inspect
import json
import typing
import unittest

import reminderd
from support import TOP

SCHEMA = json.loads((TOP / "protocol/schema/reminderd.schema.json").read_text())


class SchemaTest(unittest.TestCase):
    def test_each_type_has_the_members_of_the_schema(self):
        types = [
            kind
            for name, kind in inspect.getmembers(reminderd, inspect.isclass)
            if hasattr(kind, "__total__") and not name.startswith("_")
        ]
        self.assertGreater(len(types), 10)
        for kind in types:
            with self.subTest(kind.__name__):
                wanted = SCHEMA["$defs"][kind.__name__]
                self.assertEqual(set(typing.get_type_hints(kind)), set(wanted["properties"]))
                # `from __future__ import annotations` leaves the inherited keys as they are.
                self.assertEqual(set(kind.__required_keys__), set(wanted.get("required", ())))

    def test_a_delivery_has_the_members_of_the_schema(self):
        wanted = set(SCHEMA["$defs"]["Delivery"]["properties"]) - {"committed"}
        self.assertEqual(set(reminderd.Delivery.__dataclass_fields__), wanted)

    def test_the_version_is_the_schemas(self):
        self.assertEqual(reminderd.PROTOCOL_VERSION, SCHEMA["protocolVersion"])
