"""The Helm chart: rendered by Helm, held against the schemas of Kubernetes and the code."""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from bucketlog.stateless_broker.process.http_endpoint import PAGES
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from tests.infra.programs import INFRA, ROOT, installed, run
from tests.servers.components import Components

pytestmark = pytest.mark.long

CHART = INFRA / "helm"
NEEDED = {
    "image": {"repository": "example/bucketlog", "tag": "1.0"},
    "bucketUrl": "s3://example-log/prod",
    "redis": {"secretName": "bucketlog-redis"},
}
EVERYTHING = NEEDED | {
    "zones": ["eu-1a", "eu-1b", "eu-1c"],
    "autoscaling": {"enabled": True},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {"monitoring": [{"namespaceSelector": {"matchLabels": {"team": "ops"}}}]},
    "settings": {"BUCKETLOG_LOG_RETENTION_MS": "86400000"},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/b"}},
    "credentialsSecretName": "keys",
    "endpointUrl": "http://minio:9000",
    "nodeSelector": {"kubernetes.io/arch": "arm64"},
    "tolerations": [{"key": "brokers", "operator": "Exists"}],
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
}
VERSIONS = ("1.29", "1.37")
"""Of Kubernetes: the chart's oldest, and the newest that schemas are there for."""

Manifest = dict[str, Any]
Render = Callable[..., list[Manifest]]


class RenderError(Exception):
    """What Helm says."""


@pytest.fixture(scope="module")
def render(components: Components, tmp_path_factory: pytest.TempPathFactory) -> Render:
    helm = installed("helm", components)
    components.took_part("Helm", helm.parent.name)
    return partial(rendered, helm, tmp_path_factory.mktemp("values"))


def rendered(
    helm: Path, folder: Path, values: Mapping[str, Any], version: str = VERSIONS[-1]
) -> list[Manifest]:
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    command: list[str | Path] = [
        helm,
        "template",
        "demo",
        CHART,
        "--values",
        file,
        "--kube-version",
        f"{version}.0",
    ]
    homes = {f"HELM_{kind}_HOME": str(folder) for kind in ("CONFIG", "CACHE", "DATA")}
    done = run(command, ROOT, homes)
    if done.returncode:
        raise RenderError(done.stderr)
    return [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]


class Kubernetes:
    """Its schemas, strict: no field that is not there."""

    def __init__(self, wheels: Path) -> None:
        (wheel,) = wheels.glob("kubernetes_validate-*.whl")
        self._wheel = ZipFile(wheel)
        self._folders = {
            found[1]: found[0]
            for name in self._wheel.namelist()
            if (found := re.match(r".*/v(\d+\.\d+)\.\d+-local-strict/", name))
        }
        self._registries: dict[str, Registry[Any]] = {}

    def complaints(self, manifest: Manifest, version: str) -> list[str]:
        group, _, api = str(manifest["apiVersion"]).rpartition("/")
        name = "-".join(filter(None, [manifest["kind"].lower(), group.partition(".")[0], api]))
        validator = Draft202012Validator(
            self._read(version, name), registry=self._definitions(version)
        )
        return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(manifest)]

    def _definitions(self, version: str) -> "Registry[Any]":
        if version not in self._registries:
            whole = Resource.from_contents(self._read(version, "_definitions"))
            self._registries[version] = Registry().with_resource("/api/_definitions.json", whole)
        return self._registries[version]

    def _read(self, version: str, name: str) -> Any:
        return json.loads(self._wheel.read(f"{self._folders[version]}{name}.json"))


@pytest.fixture(scope="module")
def kubernetes(components: Components) -> Kubernetes:
    return Kubernetes(installed("schemas", components))


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


@pytest.mark.parametrize("values", [NEEDED, EVERYTHING], ids=["needed", "everything"])
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_field(
    values: dict[str, Any], version: str, render: Render, kubernetes: Kubernetes
) -> None:
    manifests = render(values, version)
    wrong = [
        f"{manifest['kind']}: {text}"
        for manifest in manifests
        if manifest["kind"] != "ServiceMonitor"  # a kind of Prometheus' operator
        for text in kubernetes.complaints(manifest, version)
    ]
    assert wrong == []
    kinds = {manifest["kind"] for manifest in manifests}
    assert {
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    } <= kinds
    assert ("HorizontalPodAutoscaler" in kinds) == (values is EVERYTHING)
    assert ("ServiceMonitor" in kinds) == (values is EVERYTHING)


def test_finds_a_planted_field(render: Render, kubernetes: Kubernetes) -> None:
    (deployment,) = of_kind(render(NEEDED), "Deployment")
    planted = copy.deepcopy(deployment)
    planted["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    assert any("livenesProbe" in text for text in kubernetes.complaints(planted, VERSIONS[-1]))
    planted = copy.deepcopy(deployment)
    del planted["spec"]["selector"]
    assert any("selector" in text for text in kubernetes.complaints(planted, VERSIONS[-1]))


def selectors(manifests: list[Manifest]) -> Iterator[tuple[str, dict[str, str]]]:
    """Those that are to find pods."""
    for manifest in manifests:
        spec = manifest.get("spec", {})
        match manifest["kind"]:
            case "Service":
                yield manifest["metadata"]["name"], spec["selector"]
            case "PodDisruptionBudget":
                yield "PodDisruptionBudget", spec["selector"]["matchLabels"]
            case "NetworkPolicy":
                yield "NetworkPolicy", spec["podSelector"]["matchLabels"]


def test_selectors_find_what_they_are_to_find(render: Render) -> None:
    manifests = render(EVERYTHING)
    deployments = of_kind(manifests, "Deployment")
    assert len(deployments) == 3
    for deployment in deployments:
        labels = deployment["spec"]["template"]["metadata"]["labels"].items()
        assert deployment["spec"]["selector"]["matchLabels"].items() <= labels
        found = dict(selectors(manifests))
        assert len(found) == 4
        assert all(wanted.items() <= labels for wanted in found.values())
    own = [one["spec"]["selector"]["matchLabels"] for one in deployments]
    assert all(one != other for one in own for other in own if one is not other)
    (monitor,) = of_kind(manifests, "ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    seen = [
        one for one in of_kind(manifests, "Service") if wanted <= one["metadata"]["labels"].items()
    ]
    assert [port["name"] for one in seen for port in one["spec"]["ports"]] == ["http"]
    assert monitor["spec"]["endpoints"][0]["port"] == "http"
    scaled = {
        one["spec"]["scaleTargetRef"]["name"]
        for one in of_kind(manifests, "HorizontalPodAutoscaler")
    }
    assert scaled == {one["metadata"]["name"] for one in deployments}
    assert all("replicas" not in one["spec"] for one in deployments), "the autoscaler's"


def test_brokers_know_their_zone_and_their_address(render: Render) -> None:
    zones = set()
    for deployment in of_kind(render(EVERYTHING), "Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        (broker,) = pod["containers"]
        given = {one["name"]: one for one in broker["env"]}
        ours = {name for name in given if name.startswith("BUCKETLOG_")}
        assert ours <= {f"BUCKETLOG_{name.upper()}" for name in BrokerSettings.model_fields}
        assert (
            given["BUCKETLOG_ADVERTISED_HOST"]["valueFrom"]["fieldRef"]["fieldPath"]
            == "status.podIP"
        )
        assert given["BUCKETLOG_LOG_RETENTION_MS"]["value"] == "86400000"
        (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        assert term["matchExpressions"][0]["values"] == [given["BUCKETLOG_ZONE"]["value"]]
        zones.add(given["BUCKETLOG_ZONE"]["value"])
        drain_ms = BrokerSettings.model_fields["drain_timeout_ms"].default
        assert pod["terminationGracePeriodSeconds"] * 1000 > drain_ms
        assert pod["securityContext"]["runAsNonRoot"]
        assert broker["securityContext"]["readOnlyRootFilesystem"]
        ports = {one["name"]: str(one["containerPort"]) for one in broker["ports"]}
        assert ports["kafka"] == given["BUCKETLOG_PORT"]["value"]
        assert ports["http"] == given["BUCKETLOG_HTTP_PORT"]["value"]
        paths = {page.path for page in PAGES}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert broker[probe]["httpGet"]["path"] in paths
    assert zones == set(EVERYTHING["zones"])


REFUSED = {
    "nothing given": ({}, "bucketUrl"),
    "an unknown value": (NEEDED | {"replica": 3}, "replica"),
    "the newest image": (NEEDED | {"image": {"repository": "r", "tag": "latest"}}, "tag"),
    "no bucket of S3": (NEEDED | {"bucketUrl": "file:///log"}, "bucketUrl"),
    "a setting of the chart's own": (
        NEEDED | {"settings": {"BUCKETLOG_PORT": "1"}},
        "BUCKETLOG_PORT",
    ),
    "a setting that is none": (NEEDED | {"settings": {"PORT": "1"}}, "PORT"),
    "a number, which Helm would write as 8.64e+07": (
        NEEDED | {"settings": {"BUCKETLOG_LOG_RETENTION_MS": 86_400_000}},
        "got number, want string",
    ),
    "a zone twice": (NEEDED | {"zones": ["a", "a"]}, "zones"),
    "too little time to stop": (NEEDED | {"terminationGracePeriodSeconds": 5}, "terminationGrace"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str, render: Render) -> None:
    values, said = REFUSED[case]
    with pytest.raises(RenderError, match=said):
        render(values)


def test_older_kubernetes_is_refused(render: Render) -> None:
    with pytest.raises(RenderError, match="kubeVersion"):
        render(NEEDED, "1.28")


def test_every_value_has_a_schema() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(values) == set(schema["properties"]) - {"global"}
