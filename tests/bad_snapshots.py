"""Snapshots that are wrong in one way each, and where and how the reader must say so. Import it as ``bad_snapshots``.

Most are the snapshot that uses every field with one edit; the others are bytes. Those about NUMA zones and NICs are in
`bad_zones`.
"""

from __future__ import annotations

import copy
import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GOOD: dict[str, Any] = json.loads((Path(__file__).parent.parent / "docs" / "every-field.json").read_text("utf-8"))
HEAD = b'{"format": "placement-snapshot/1", '

REMOVED = object()
"""Stands for a field that an edit takes away."""


@dataclass(frozen=True)
class Bad:
    """A wrong snapshot.

    Attributes
    ----------
    name : str
        The rule it breaks.
    change : bytes, or mapping of path to value
        The file, or edits to `GOOD`.
    path : str
        Where the problem must be reported.
    phrase : str
        What its message must hold.
    """

    name: str
    change: bytes | Mapping[str, object]
    path: str
    phrase: str

    @property
    def data(self) -> bytes:
        """The file."""
        return self.change if isinstance(self.change, bytes) else edited(self.change)


def edited(edits: Mapping[str, object]) -> bytes:
    """Return `GOOD` as a file after some edits."""
    snapshot = copy.deepcopy(GOOD)
    for path, value in edits.items():
        *way, last = [int(part) if part.isdigit() else part for part in re.findall(r"[\w-]+", path)]
        place: Any = snapshot
        for step in way:
            place = place[step]
        if value is REMOVED:
            del place[last]
        elif isinstance(place, list) and last == len(place):
            place.append(value)
        else:
            place[last] = value
    return json.dumps(snapshot).encode()


TASK = "jobs[0].groups[0].task"
TIES = "jobs[0].groups[0].topology"
RUN = "jobs[2].running.tasks"
DEEP_GROUPS = HEAD + b'"jobs": [{"name": "j", "groups": [' + b'{"name": "g", "groups": [' * 40
DEEP_GROUPS += b'{"name": "t", "task": {}}' + b"]}" * 40 + b"]}]}"
LEAF = {"name": "x", "task": {}}

BYTES = [
    Bad("empty file", b"", "", "the file is empty"),
    Bad("blanks", b" \n\t ", "", "nothing but blanks"),
    Bad("truncated between values", HEAD + b'"nodes": [{"name": "a"}', "", "breaks off at line 1"),
    Bad("truncated in a text", HEAD + b'"nodes": [{"name": "a', "", "breaks off"),
    Bad("truncated in a key", HEAD + b'"nodes": [{"na', "", "breaks off"),
    Bad("binary", b"\x7fELF\x02\x01\x01\0\0\0\0", "", "binary file"),
    Bad("picture", b"\x89PNG\r\n\x1a\n\0\0\0\r", "", "is not UTF-8"),
    Bad("latin-1", HEAD + '"description": "é"}'.encode("latin-1"), "", "is not UTF-8"),
    Bad("byte order mark", b"\xef\xbb\xbf" + HEAD + b'"time": 1}', "", "byte order mark"),
    Bad("UTF-16", '{"format": "placement-snapshot/1"}'.encode("utf-16"), "", "UTF-16"),
    Bad("list", b"[]", "", "holds a list, expected a JSON object"),
    Bad("text", b'"nodes"', "", "holds text"),
    Bad("null", b"null", "", "`null`"),
    Bad("number", b"42", "", "`42`"),
    Bad("YAML", b"format: placement-snapshot/1\n", "", "not JSON at line 1, column 1, at `format: "),
    Bad("deep lists", b'{"nodes": ' + b"[" * 200_000, "", "nested too deeply"),
    Bad("deep objects", b'{"a":' * 200_000, "", "nested too deeply"),
    Bad("deep closed", b'{"a":' * 200_000 + b"1" + b"}" * 200_000, "", "nested too deeply"),
    Bad("deep groups", DEEP_GROUPS, "jobs[0]" + ".groups[0]" * 16 + ".groups", "more than 16 deep"),
    Bad("key twice at the top", HEAD + b'"time": 1, "time": 2}', "time", 'the key "time" is given twice'),
    Bad("key twice below", HEAD + b'"nodes": [{"name": "a"}, {"name": "b", "name": "b"}]}', "nodes[1].name", "twice"),
    Bad("key twice in a mapping", HEAD + b'"nodes": [{"labels": {"a": "1", "a": "2"}}]}', "nodes[0].labels.a", "twice"),
    Bad("key twice by escape", HEAD + b'"time": 1, "\\u0074ime": 1}', "time", "twice"),
    Bad("NaN", HEAD + b'"nodes": [{"name": "a", "gpus": [{"memory": NaN}]}]}', "nodes[0].gpus[0].memory", "found NaN"),
    Bad("Infinity", HEAD + b'"time": -Infinity}', "time", "found -Infinity"),
    Bad("too large a float", HEAD + b'"time": 1e400}', "time", "found 1e400, which is too large"),
    Bad("too large an integer", HEAD + b'"time": 1' + b"0" * 9000 + b"}", "time", "too large"),
    Bad("trailing comma", HEAD + b'"nodes": [],}', "", "not JSON at line 1"),
    Bad("comment", b'{\n  // nodes\n  "nodes": []}', "", "line 2, column 3"),
    Bad("control character", HEAD + b'"source": "a\tb"}', "", "invalid control character"),
    Bad("two objects", HEAD + b'"time": 1}\n{}', "", "something follows the JSON object at line 2"),
    Bad("half a surrogate pair", HEAD + b'"source": "\\ud800"}', "source", "surrogate"),
    Bad("damaged gzip", b"\x1f\x8b\x08nonsense", "", "gzip data are damaged"),
    Bad("truncated gzip", gzip.compress(HEAD + b'"time": 1}')[:-9], "", "gzip data break off"),
    Bad("something behind gzip", gzip.compress(HEAD + b'"time": 1}') + b"more", "", "gzip data are damaged"),
]

STRUCTURE = [
    Bad("no format", {"format": REMOVED}, "format", '"format": "placement-snapshot/1"'),
    Bad("later version", {"format": "placement-snapshot/2"}, "format", 'reads "placement-snapshot/1" only'),
    Bad("another format", {"format": "placement-events/1"}, "format", "this is an event log"),
    Bad("unknown format", {"format": "kubernetes"}, "format", 'found "kubernetes"'),
    Bad("format is no text", {"format": 1}, "format", 'expected "placement-snapshot/1"'),
    Bad("misspelt field", {"job": []}, "job", 'did you mean "jobs"?'),
    Bad("misspelt field below", {f"{TASK}.gpu": 1}, f"{TASK}.gpu", 'did you mean "gpus"?'),
    Bad("unknown field", {"nodes[1].colour": "red"}, "nodes[1].colour", "the fields here are"),
    Bad("missing field", {"nodes[1].name": REMOVED}, "nodes[1].name", "the field is missing; add it: text"),
    Bad("missing list", {"jobs[1].groups": REMOVED}, "jobs[1].groups", "missing"),
    Bad("text for a number", {"nodes[0].count": "3"}, "nodes[0].count", 'found the text "3", expected a whole number'),
    Bad("fraction for a count", {"nodes[0].count": 1.5}, "nodes[0].count", "found 1.5, expected a whole number"),
    Bad("fraction for pods", {"nodes[0].pods": 1.5}, "nodes[0].pods", "expected a whole number"),
    Bad("number for a text", {"nodes[0].name": 3}, "nodes[0].name", "found 3, expected text; write it in quotes"),
    Bad("number in labels", {"nodes[0].labels": {"a": "b", "c/d": 1}}, 'nodes[0].labels["c/d"]', "expected text"),
    Bad(
        "list in extended", {"nodes[0].extended": {"x": []}}, "nodes[0].extended.x", "found a list, expected a quantity"
    ),
    Bad("true for a quantity", {f"{TASK}.cpu": True}, f"{TASK}.cpu", "found true, expected a quantity"),
    Bad("null that must be", {"jobs[0].duration": {"seconds": None}}, "jobs[0].duration.seconds", "; write a number"),
    Bad("null for a list", {"nodes[0].gpus": None}, "nodes[0].gpus", "leave the field out for its default"),
    Bad("object for a list", {"nodes": {}}, "nodes", "found an object, expected a list"),
    Bad("text for a list", {"topology": "rack"}, "topology", "put it in a list"),
    Bad("misspelt choice", {"nodes[1].gpus[1].health": "unhealty"}, "nodes[1].gpus[1].health", '"unhealthy"?'),
    Bad(
        "soft taint", {"nodes[0].taints[0].effect": "PreferNoSchedule"}, "nodes[0].taints[0].effect", "expected one of"
    ),
    Bad("unknown objective", {"policy.objectives[0]": "speed"}, "policy.objectives[0]", '"fragmentation"'),
    Bad("scaling is no pair", {"jobs[0].duration.scaling[0]": [1]}, "jobs[0].duration.scaling[0]", "a list of 2"),
    Bad("version of cgroup", {"nodes[0].cgroup": 3}, "nodes[0].cgroup", "expected one of 1, 2"),
]

CLUSTER = [
    Bad("node named twice", {"nodes[2]": {"name": "dgx"}}, "nodes[2].name", "the name of nodes[0] already"),
    Bad(
        "node named as a copy",
        {"nodes[2]": {"name": "dgx-2"}},
        "nodes[2].name",
        'a copy of nodes[0], "dgx" with',
    ),
    Bad("node without a name", {"nodes[2]": {"name": ""}}, "nodes[2].name", "is empty"),
    Bad("node name with a newline", {"nodes[2]": {"name": "a\nb"}}, "nodes[2].name", "cannot be printed"),
    Bad("no nodes of a kind", {"nodes[2]": {"name": "a", "count": 0}}, "nodes[2].count", "found 0, expected 1 or more"),
    Bad("too many nodes of a kind", {"nodes[2]": {"name": "a", "count": 10**80}}, "nodes[2].count", "266 bits"),
    Bad("too many nodes", {"nodes[0].count": 10**6}, "nodes", "1000001 nodes in all"),
    Bad("position at no level", {"nodes[1].position": {"racks": "r2"}}, "nodes[1].position.racks", '"rack"?'),
    Bad("position in no domain", {"nodes[1].position.rack": ""}, "nodes[1].position.rack", "is empty"),
    Bad("domain with a newline", {"nodes[1].position.rack": "r\n2"}, "nodes[1].position.rack", "cannot be printed"),
    Bad("label without a key", {"nodes[0].labels": {"": "x"}}, "nodes[0].labels", "empty key"),
    Bad("taint without a key", {"nodes[0].taints[0].key": ""}, "nodes[0].taints[0].key", "empty"),
    Bad("CPU is no quantity", {"nodes[0].cpu": "12 cores"}, "nodes[0].cpu", "Kubernetes quantity"),
    Bad("negative CPU", {"nodes[0].cpu": "-1"}, "nodes[0].cpu", 'found "-1", expected 0 or more'),
    Bad("too much memory", {"nodes[0].memory": "8Ei"}, "nodes[0].memory", "expected at most 2**63 - 1"),
    Bad("much too much memory", {"nodes[0].memory": 10**300}, "nodes[0].memory", "expected at most"),
    Bad("NaN in quotes", {"nodes[0].memory": "NaN"}, "nodes[0].memory", "Kubernetes quantity"),
    Bad("negative pods", {"nodes[0].pods": -1}, "nodes[0].pods", "found -1, expected 0 or more"),
    Bad("negative resource", {"nodes[0].extended": {"a/b": -1}}, 'nodes[0].extended["a/b"]', "0 or more"),
    Bad("resource without a name", {"nodes[0].extended": {"": 1}}, "nodes[0].extended", "empty name"),
    Bad("driver is no version", {"nodes[0].driver": "550.x"}, "nodes[0].driver", "digits and dots"),
    Bad("CUDA is no version", {"nodes[0].cuda": "v12"}, "nodes[0].cuda", "digits and dots"),
    Bad("negative failure rate", {"nodes[0].failure_rate": -1}, "nodes[0].failure_rate", "at least 0"),
    Bad("names of too few cards", {"nodes[1].devices": ["a"]}, "nodes[1].devices", "1 name for 5 cards"),
    Bad("a card named twice", {"nodes[1].devices": ["a", "b", "c", "d", "a"]}, "nodes[1].devices[4]", "listed twice"),
    Bad("names of counted cards", {"nodes[0].devices": ["a", "b", "c", "d"]}, "nodes[0].devices", "stands for 3 nodes"),
    Bad(
        "names of a group's tasks", {"jobs[0].task_names": {"x": ["a"]}}, "jobs[0].task_names.x", "no group with tasks"
    ),
    Bad(
        "names of two tasks", {"jobs[0].task_names.monitor": ["a", "b"]}, "jobs[0].task_names.monitor", "2 names for 1"
    ),
    Bad("a claim of no request", {"jobs[0].claims": {"a/b": "c"}}, 'jobs[0].claims["a/b"]', "claim/request"),
    Bad("claims of counted jobs", {"jobs[1].claims": {"a": "b/c"}}, "jobs[1].claims", "stands for 2 jobs"),
    Bad("a task without a name", {"jobs[0].task_names.monitor": [""]}, "jobs[0].task_names.monitor[0]", "is empty"),
    Bad("names of counted jobs", {"jobs[1].task_names": {"main": ["a"]}}, "jobs[1].task_names", "stands for 2 jobs"),
    Bad("nothing in the ledger", {"ledger[0].count": 0}, "ledger[0].count", "1 or more"),
    Bad("an instance in MIG mode", {"nodes[1].gpus[4].mig_static": True}, "nodes[1].gpus[4].mig_static", "of its own"),
    Bad("an instance of no profile", {"nodes[1].gpus[4].mig_instance": "9g"}, "nodes[1].gpus[4].mig_instance", "9g"),
    Bad("an instance of what", {"nodes[1].gpus[4].model": "T4"}, "nodes[1].gpus[4].model", "nothing is known of MIG"),
    Bad("an instance too large", {"nodes[1].gpus[4].memory": "40Gi"}, "nodes[1].gpus[4].memory", "of the instance"),
    Bad("a share of what", {"jobs[1].groups[0].task.mig_instance": "9g"}, "jobs[1].groups[0].task.mig_instance", "9g"),
    Bad("card without a model", {"nodes[1].gpus[2].model": ""}, "nodes[1].gpus[2].model", "empty"),
    Bad("no cards of a kind", {"nodes[1].gpus[2].count": 0}, "nodes[1].gpus[2].count", "1 or more"),
    Bad("too many cards", {"nodes[1].gpus[2].count": 254}, "nodes[1].gpus", "258 cards in one node"),
    Bad("card memory", {"nodes[1].gpus[0].memory": "40GB"}, "nodes[1].gpus[0].memory", "Kubernetes quantity"),
    Bad("capability", {"nodes[0].gpus[0].compute_capability": "sm90"}, "nodes[0].gpus[0].compute_capability", "digits"),
    Bad("MIG instances without MIG", {"nodes[1].gpus[0].mig_enabled": False}, "nodes[1].gpus[0].mig_layout", "off"),
    Bad("MIG slot twice", {"nodes[1].gpus[0].mig_layout[1].start": 0}, "nodes[1].gpus[0].mig_layout[1]", "twice"),
    Bad(
        "MIG slot below 0", {"nodes[1].gpus[0].mig_layout[0].start": -1}, "nodes[1].gpus[0].mig_layout[0].start", "0 or"
    ),
    Bad("link to no card", {"nodes[0].links[1].b": 4}, "nodes[0].links[1].b", "there is no card 4"),
    Bad("link to itself", {"nodes[0].links[1].b": 1}, "nodes[0].links[1]", "linked to itself"),
    Bad("link twice", {"nodes[0].links[1]": {"a": 1, "b": 0, "kind": "PIX"}}, "nodes[0].links[1]", "links[0] already"),
    Bad("lanes of a bus", {"nodes[0].links[1].width": 2}, "nodes[0].links[1].width", "no lanes"),
    Bad("level twice", {"topology": ["block", "rack", "nvlink_domain", "rack"]}, "topology[3]", "listed twice"),
    Bad("reserved level", {"topology[3]": "node"}, "topology[3]", "a level of every snapshot"),
    Bad("level without a name", {"topology[3]": ""}, "topology[3]", "empty"),
    Bad(
        "too many levels", {"topology": ["block", "rack", "nvlink_domain", *"abcdefghijklmn"]}, "topology", "17 levels"
    ),
    Bad(
        "domain in two",
        {"nodes[1].position": {"block": "b2", "rack": "r1"}},
        "nodes[1].position.rack",
        'rack "r1" lies in block "b1" (nodes[0]) and in block "b2" (nodes[1])',
    ),
    Bad(
        "NVLink domain at no level",
        {"topology": ["block", "rack"]},
        "nodes[0].nvlink_domain",
        'no level "nvlink_domain"',
    ),
    Bad(
        "NVLink domain that the position contradicts",
        {"nodes[0].position.nvlink_domain": "domain-8"},
        "nodes[0].nvlink_domain",
        'found "domain-7", but `position` says "domain-8"',
    ),
    Bad(
        "NVLink domain with a newline",
        {"nodes[0].nvlink_domain": "domain\n7"},
        "nodes[0].nvlink_domain",
        "cannot be printed",
    ),
    Bad(
        "NVLink domain in two",
        {"nodes[1].nvlink_domain": "domain-7"},
        "nodes[1].nvlink_domain",
        'lies in rack "r1" (nodes[0]) and in rack "r2" (nodes[1])',
    ),
    Bad("limit on no level", {"limits[0].level": "row"}, "limits[0].level", 'no level "row"'),
    Bad("limit on an empty level", {"limits[0].level": ""}, "limits[0].level", 'no level ""'),
    Bad("limit on no domain", {"limits[0].domain": "r9"}, "limits[0].domain", 'called "r9"'),
    Bad("limit on a part of the cluster", {"limits[1].domain": "r1"}, "limits[1].domain", "one cluster"),
    Bad("limit on nothing", {"limits[1].gpus": REMOVED}, "limits[1]", "caps nothing"),
    Bad("negative limit", {"limits[1].gpus": -1}, "limits[1].gpus", "0 or more"),
    Bad("two limits", {"limits[2]": {"level": "cluster", "cpu": 1}}, "limits[2]", "limits[1] is about the same domain"),
    Bad("reservation ends first", {"reservations[0].end": 90000}, "reservations[0].end", "not after its start"),
    Bad("reservation of no node", {"reservations[0].nodes[0]": "dgx-3"}, "reservations[0].nodes[0]", "no node"),
    Bad("reservation for no job", {"reservations[0].jobs": ["trian"]}, "reservations[0].jobs[0]", '"train"?'),
    Bad("reservation for no queue", {"reservations[0].queues": ["x"]}, "reservations[0].queues[0]", "no queue"),
]

JOBS = [
    Bad("job named twice", {"jobs[2].name": "train"}, "jobs[2].name", "the name of jobs[0] already"),
    Bad("job named as a copy", {"jobs[2].name": "prepare-1"}, "jobs[2].name", "a copy of jobs[1]"),
    Bad("job without a name", {"jobs[2].name": ""}, "jobs[2].name", "empty"),
    Bad("no jobs of a kind", {"jobs[3]": {"name": "a", "count": 0, "groups": [LEAF]}}, "jobs[3].count", "1 or more"),
    Bad("too many tasks", {"jobs[3]": {"name": "a", "count": 10**7, "groups": [LEAF]}}, "jobs[3]", "10,000,000 in all"),
    Bad("job without groups", {"jobs[1].groups": []}, "jobs[1].groups", "no task group"),
    Bad(
        "group named twice", {"jobs[0].groups[2]": LEAF | {"name": "monitor"}}, "jobs[0].groups[2].name", "groups[1] al"
    ),
    Bad("group without a name", {"jobs[1].groups[0].name": ""}, "jobs[1].groups[0].name", "empty"),
    Bad("group with a slash", {"jobs[1].groups[0].name": "a/b"}, "jobs[1].groups[0].name", 'expected no "/"'),
    Bad("group of nothing", {"jobs[1].groups[0].task": REMOVED}, "jobs[1].groups[0]", "neither `task` nor `groups`"),
    Bad("group of both", {"jobs[1].groups[0].groups": [LEAF]}, "jobs[1].groups[0]", "both `task` and `groups`"),
    Bad("group of none", {"jobs[1].groups[0].count": 0}, "jobs[1].groups[0].count", "1 or more"),
    Bad("minimum of none", {"jobs[0].groups[0].min_count": 0}, "jobs[0].groups[0].min_count", "1 to count"),
    Bad("minimum above the count", {"jobs[0].groups[0].min_count": 5}, "jobs[0].groups[0].min_count", "which is 4"),
    Bad("minimum of groups", {"jobs[2].groups[0].min_groups": 3}, "jobs[2].groups[0].min_groups", "which is 2"),
    Bad(
        "minimum of no groups", {"jobs[1].groups[0].min_groups": 1}, "jobs[1].groups[0].min_groups", "no nested groups"
    ),
    Bad("negative cards", {"jobs[0].groups[1].task.gpus": -1}, "jobs[0].groups[1].task.gpus", "0 or more"),
    Bad("share of 0", {"jobs[1].groups[0].task.gpu_share": 0}, "jobs[1].groups[0].task.gpu_share", "above 0"),
    Bad(
        "share above 1", {"jobs[1].groups[0].task.gpu_share": "1001m"}, "jobs[1].groups[0].task.gpu_share", "at most 1"
    ),
    Bad(
        "share is no quantity", {"jobs[1].groups[0].task.gpu_share": "half"}, "jobs[1].groups[0].task.gpu_share", "0.5"
    ),
    Bad("share of no card", {"jobs[0].groups[1].task.gpu_share": 1}, "jobs[0].groups[1].task.gpu_share", "gpus is 0"),
    Bad(
        "memory of no card", {"jobs[0].groups[1].task.gpu_memory": 1}, "jobs[0].groups[1].task.gpu_memory", "gpus is 0"
    ),
    Bad("model of no card", {"jobs[0].groups[1].task.gpu_models": ["T4"]}, "jobs[0].groups[1].task.gpu_models", "is 0"),
    Bad("empty model", {f"{TASK}.gpu_models": ["T4", ""]}, f"{TASK}.gpu_models[1]", "empty"),
    Bad(
        "MIG and a share",
        {"jobs[1].groups[0].task.mig_profile": "1g.5gb"},
        "jobs[1].groups[0].task.mig_profile",
        "both",
    ),
    Bad("negative memory", {f"{TASK}.memory": "-1Gi"}, f"{TASK}.memory", "0 or more"),
    Bad("negative NICs", {f"{TASK}.nics": -1}, f"{TASK}.nics", "0 or more"),
    Bad("negative demand", {f"{TASK}.extended": {"gas": -2}}, f"{TASK}.extended.gas", "0 or more"),
    Bad("selector without a key", {f"{TASK}.node_selector": {"": "a"}}, f"{TASK}.node_selector", "empty key"),
    Bad("toleration of an empty key", {f"{TASK}.tolerations[0].key": ""}, f"{TASK}.tolerations[0].key", '"Equal"'),
    Bad("toleration of a value", {f"{TASK}.tolerations[1].value": "x"}, f"{TASK}.tolerations[1].value", "no value"),
    Bad("isolation twice", {f"{TASK}.isolation": ["fault", "fault"]}, f"{TASK}.isolation[1]", "twice"),
    Bad("required level", {"jobs[0].groups[0].topology.required": "row"}, "jobs[0].groups[0].topology.required", "row"),
    Bad(
        "slice of 0",
        {"jobs[0].groups[0].topology.slices[0].sizes": [0]},
        "jobs[0].groups[0].topology.slices[0].sizes[0]",
        "1 or",
    ),
    Bad(
        "spread of nothing",
        {"jobs[0].groups[0].topology.spread": [{"level": "rack"}]},
        "jobs[0].groups[0].topology.spread[0]",
        "nothing",
    ),
    Bad(
        "affinity to no group", {"jobs[0].affinity[0].a": "worker"}, "jobs[0].affinity[0].a", 'did you mean "workers"?'
    ),
    Bad("affinity to itself", {"jobs[0].affinity[0].b": "workers"}, "jobs[0].affinity[0]", "the same"),
    Bad("affinity at no level", {"jobs[0].affinity[0].level": "row"}, "jobs[0].affinity[0].level", "no level"),
    Bad(
        "slices do not divide", {f"{TIES}.slices[0].sizes": [3]}, f"{TIES}.slices[0].sizes", "do not divide the 4 tasks"
    ),
    Bad("slices do not add up", {f"{TIES}.slices[0].sizes": [2, 3]}, f"{TIES}.slices[0].sizes", "add up to 5"),
    Bad(
        "slices from narrow to wide",
        {f"{TIES}.slices[1]": {"level": "rack", "sizes": [4]}},
        f"{TIES}.slices[1].level",
        'comes after "node"',
    ),
    Bad("slices at no level", {f"{TIES}.slices[0].level": "row"}, f"{TIES}.slices[0].level", 'no level "row"'),
    Bad(
        "preferred wider than required",
        {f"{TIES}.required": "rack", f"{TIES}.preferred": "block", f"{TIES}.balanced": "node"},
        f"{TIES}.preferred",
        'wider than the required level "rack"',
    ),
    Bad("balanced outside", {f"{TIES}.balanced": "block"}, f"{TIES}.balanced", 'within the required one, "block"'),
    Bad("spread outside", {f"{TIES}.spread[0].level": "block"}, f"{TIES}.spread[0].level", "within the required one"),
    Bad("spread too thin", {f"{TIES}.spread[0].min_domains": 5}, f"{TIES}.spread[0].min_domains", "has 4 tasks"),
    Bad(
        "topology nobody is in",
        {"topology": ["block", "row", "rack", "nvlink_domain"], f"{TIES}.preferred": "row"},
        f"{TIES}.preferred",
        'no node has a position at level "row"',
    ),
    Bad(
        "affinity nobody is in",
        {"topology": ["block", "rack", "nvlink_domain", "shelf"], "jobs[0].affinity[0].level": "shelf"},
        "jobs[0].affinity[0].level",
        'no node has a position at level "shelf"',
    ),
    Bad(
        "affinity to a part of itself",
        {"jobs[2].affinity": [{"a": "replica/leader", "b": "replica", "level": "rack", "kind": "together"}]},
        "jobs[2].affinity[0]",
        '"replica/leader" is within group "replica"',
    ),
    Bad("data at no level", {"jobs[0].data[0].level": "row"}, "jobs[0].data[0].level", "no level"),
    Bad(
        "data from no level",
        {"jobs[0].data[0].fetch_seconds": {"row": 1}},
        "jobs[0].data[0].fetch_seconds.row",
        "no level",
    ),
    Bad("negative duration", {"jobs[0].duration.seconds": -1}, "jobs[0].duration.seconds", "at least 0"),
    Bad("factor of 0", {"jobs[0].duration.shared": 0}, "jobs[0].duration.shared", "above 0"),
    Bad("factor by model", {"jobs[0].duration.gpu_models": {"T4": 0}}, "jobs[0].duration.gpu_models.T4", "above 0"),
    Bad("scaling down", {"jobs[0].duration.scaling[1]": [2, 1]}, "jobs[0].duration.scaling[1][0]", "ascending"),
    Bad("negative weight", {"jobs[0].weight": -1}, "jobs[0].weight", "0 or more"),
    Bad("too large a value", {"jobs[1].value": 10**12 + 1}, "jobs[1].value", "at most 1,000,000,000,000"),
    Bad("value and weight", {"jobs[0].value": 3}, "jobs[0].value", "both value and weight"),
    Bad("too large a priority", {"jobs[0].priority": 2**31}, "jobs[0].priority", "at most"),
    Bad("hard deadline that is none", {"jobs[1].hard_deadline": True}, "jobs[1].hard_deadline", "states no `deadline`"),
    Bad("interval of 0", {"jobs[0].checkpoint_interval": 0}, "jobs[0].checkpoint_interval", "above 0"),
    Bad("negative restart", {"jobs[0].restart_seconds": -1}, "jobs[0].restart_seconds", "at least 0"),
    Bad("required driver", {"jobs[0].requires.driver": "new"}, "jobs[0].requires.driver", "digits and dots"),
    Bad("unknown queue", {"jobs[0].queue": "visoin"}, "jobs[0].queue", 'did you mean "vision"?'),
    Bad("after no job", {"jobs[0].after[1]": "prepare-2"}, "jobs[0].after[1]", "there is no job"),
    Bad("after itself", {"jobs[0].after[1]": "train"}, "jobs[0].after[1]", "waits for itself"),
    Bad("after each other", {"jobs[1].after": ["train"]}, "jobs[0].after", "in a circle"),
]

RUNNING = [
    Bad("running twice", {"jobs[2].count": 2}, "jobs[2].running", "stands for 2 jobs"),
    Bad("in no group", {f"{RUN}[0].group": "leader"}, f"{RUN}[0].group", 'did you mean "replica/leader"?'),
    Bad("in a group of groups", {f"{RUN}[0].group": "replica"}, f"{RUN}[0].group", "no group with tasks"),
    Bad("index too large", {f"{RUN}[0].index": 2}, f"{RUN}[0].index", "tasks 0 to 1"),
    Bad(
        "index twice",
        {f"{RUN}[2]": GOOD["jobs"][2]["running"]["tasks"][0] | {"nics": []}},
        f"{RUN}[2].index",
        "at tasks[0] already",
    ),
    Bad("on no node", {f"{RUN}[0].node": "dgx"}, f"{RUN}[0].node", "there is no node"),
    Bad("on no card", {f"{RUN}[0].gpus": [4]}, f"{RUN}[0].gpus[0]", 'no card 4: "dgx-0" has cards 0 to 3'),
    Bad("on too few cards", {f"{RUN}[0].gpus": []}, f"{RUN}[0].gpus", "holds 0 cards, but asks for 1"),
    Bad(
        "on a card twice",
        {"jobs[2].groups[0].groups[0].task.gpus": 2, f"{RUN}[0].gpus": [0, 0]},
        f"{RUN}[0].gpus[1]",
        "twice",
    ),
    Bad("in no slot", {f"{RUN}[1].mig_starts": []}, f"{RUN}[1].mig_starts", "0 slots for instances on 1 cards"),
    Bad("slot of no instance", {f"{RUN}[0].mig_starts": [0]}, f"{RUN}[0].mig_starts", "no MIG instance"),
    Bad(
        "two instances on a slot",
        {f"{RUN}[2]": GOOD["jobs"][2]["running"]["tasks"][1] | {"index": 0}},
        f"{RUN}[2].mig_starts[0]",
        'slots 4 to 7 of card 0 of "mig" are held by jobs[2].running.tasks[1] of job',
    ),
    Bad("begun in the future", {"jobs[2].running.since": 86401}, "jobs[2].running.since", "after the snapshot's time"),
    Bad(
        "saved before it began", {"jobs[2].running.last_checkpoint": 3599}, "jobs[2].running.last_checkpoint", "before"
    ),
    Bad("negative work", {"jobs[2].running.work_done": -1}, "jobs[2].running.work_done", "at least 0"),
    Bad("negative restarts", {"jobs[2].running.restarts": -1}, "jobs[2].running.restarts", "0 or more"),
]

REST = [
    Bad("queue named twice", {"queues[2]": {"name": "vision"}}, "queues[2].name", "the name of queues[1] already"),
    Bad("queue without a name", {"queues[2]": {"name": ""}}, "queues[2].name", "empty"),
    Bad("queue under no queue", {"queues[1].parent": "reserch"}, "queues[1].parent", 'did you mean "research"?'),
    Bad("queue under itself", {"queues[0].parent": "research"}, "queues[0].parent", "its own parent"),
    Bad("queues in a circle", {"queues[0].parent": "vision"}, "queues[0].parent", "in a circle"),
    Bad("negative quota", {"queues[1].quota": {"T4": -1}}, "queues[1].quota.T4", "0 or more"),
    Bad("quota of an empty model", {"queues[1].lending_limit": {"": 1}}, "queues[1].lending_limit", "empty name"),
    Bad("negative queue weight", {"queues[1].weight": -1}, "queues[1].weight", "at least 0"),
    Bad("borrowing from nobody", {"queues[0].borrowing_limit": {"T4": 1}}, "queues[0].borrowing_limit", "no parent"),
    Bad("lending to nobody", {"queues[0].lending_limit": {"T4": 1}}, "queues[0].lending_limit", "no parent"),
    Bad(
        "lending above the quota",
        {"queues[1].lending_limit": {"H100-80": 8.5}},
        "queues[1].lending_limit.H100-80",
        "found 8.5, but its quota is 8",
    ),
    Bad(
        "lending above the quota of all models",
        {"queues[1].lending_limit": {"T4": 11}},
        "queues[1].lending_limit.T4",
        "found 11, but its quota is 10",
    ),
    Bad("job in a queue above others", {"jobs[0].queue": "research"}, "jobs[0].queue", "has queues below it"),
    Bad("negative longest wait", {"policy.max_wait_seconds": -1}, "policy.max_wait_seconds", "at least 0"),
    Bad("too long a wait", {"policy.max_wait_seconds": 1e11}, "policy.max_wait_seconds", "at most 10,000,000,000"),
    Bad("too large a queue weight", {"queues[1].weight": 1e13}, "queues[1].weight", "at most 1,000,000,000,000"),
    Bad("too late a moment", {"jobs[0].submit_time": 1e13}, "jobs[0].submit_time", "at most 1,000,000,000,000"),
    Bad("too early a moment", {"jobs[0].deadline": -1e13}, "jobs[0].deadline", "at least -1"),
    Bad("too rare checkpoints", {"jobs[0].checkpoint_interval": 1e11}, "jobs[0].checkpoint_interval", "at most"),
    Bad("too long a restart", {"jobs[0].restart_seconds": 1e300}, "jobs[0].restart_seconds", "at most 10,000,000,000"),
    Bad("no objective", {"policy.objectives": []}, "policy.objectives", "no objective"),
    Bad("objective twice", {"policy.objectives": ["tasks", "tasks"]}, "policy.objectives[1]", "listed twice"),
    Bad("unknown level of tenants", {"policy.tenants_apart": "row"}, "policy.tenants_apart", '"gpu", "node"'),
    Bad("unknown shares", {"policy.shares": "fair"}, "policy.shares", '"fair_share"'),
    Bad("negative moves", {"policy.max_moves": -1}, "policy.max_moves", "0 or more"),
]

BAD = [*BYTES, *STRUCTURE, *CLUSTER, *JOBS, *RUNNING, *REST]
