"""The chart, rendered by a real helm for several sets of values and checked against Kubernetes' own schemas."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from yamllint import linter
from yamllint.config import YamlLintConfig

from gateway.config.load import load
from tests.architecture.source import ROOT
from tests.packaging.helm_binary import helm_binary

CHART = ROOT / "helm" / "kvgate"
KUBERNETES = ("1.30", "1.37")

BACKENDS = [{"name": "rig", "url": "http://10.0.0.21:8080", "engine": "llama.cpp"}]
KEYS = {"keys": [{"name": "agents", "key": "${env.KEY_AGENTS}"}]}

VALUES: dict[str, dict[str, Any]] = {
    "default": {},
    "everything": {
        "image": {"repository": "registry.example.org/kvgate", "tag": "1.2.3", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "config": {"backends": BACKENDS, "auth": KEYS},
        "secrets": {"KEY_AGENTS": "sk-agents", "KVGATE_KEY": None},
        "drainSeconds": 600,
        "preStopSeconds": 10,
        "service": {"type": "LoadBalancer", "port": 443, "annotations": {"example.org/scheme": "internal"}},
        "admin": {"expose": True, "annotations": {"prometheus.io/scrape": "true"}},
        "networkPolicy": {"enabled": True, "adminFrom": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]},
        "ingress": {
            "enabled": True,
            "className": "nginx",
            "hosts": ["llm.example.org"],
            "tls": [{"secretName": "llm-tls", "hosts": ["llm.example.org"]}],
        },
        "extraEnv": [{"name": "SPARK_KEY", "valueFrom": {"secretKeyRef": {"name": "spark", "key": "key"}}}],
        "podAnnotations": {"example.org/team": "inference"},
        "podLabels": {"team": "inference"},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "gateway", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "priorityClassName": "high",
        "journalVolume": {"persistentVolumeClaim": {"claimName": "journal"}},
    },
    "own secret": {"existingSecret": "kvgate-keys", "secrets": {}, "podDisruptionBudget": {"enabled": False}},
}


@pytest.fixture(scope="session")
def helm() -> Path:
    return helm_binary()


def run(helm: Path, *arguments: str, values: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    command = [str(helm), *arguments, "--values", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def rendered(helm: Path, values: dict[str, Any], folder: Path, release: str = "demo") -> dict[tuple[str, str], Any]:
    """Every manifest, by kind and name."""
    result = run(helm, "template", release, str(CHART), values=values, folder=folder)
    assert result.returncode == 0, result.stderr
    manifests = [manifest for manifest in yaml.safe_load_all(result.stdout) if manifest]
    by_name = {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in manifests}
    assert len(by_name) == len(manifests)
    return by_name


def refusal(helm: Path, values: dict[str, Any], folder: Path) -> str:
    result = run(helm, "template", "demo", str(CHART), values=values, folder=folder)
    assert result.returncode != 0
    return result.stderr


@pytest.mark.parametrize("name", list(VALUES))
def test_the_chart_lints(helm: Path, tmp_path: Path, name: str) -> None:
    result = run(helm, "lint", "--strict", str(CHART), values=VALUES[name], folder=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "[WARNING]" not in result.stdout


@pytest.mark.parametrize("name", list(VALUES))
def test_manifests_match_the_schemas_of_kubernetes(helm: Path, tmp_path: Path, name: str) -> None:
    for manifest in rendered(helm, VALUES[name], tmp_path).values():
        for version in KUBERNETES:
            kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("name", list(VALUES))
def test_manifests_are_tidy_yaml(helm: Path, tmp_path: Path, name: str) -> None:
    text = run(helm, "template", "demo", str(CHART), values=VALUES[name], folder=tmp_path).stdout
    problems = list(linter.run(text, YamlLintConfig(file=str(ROOT / ".yamllint"))))
    assert [str(problem) for problem in problems] == []


@pytest.mark.parametrize("name", list(VALUES))
def test_the_gateway_file_is_one_that_kvgate_takes(helm: Path, tmp_path: Path, name: str) -> None:
    found = rendered(helm, VALUES[name], tmp_path)
    loaded = load(found["ConfigMap", "demo-kvgate"]["data"]["gateway.yaml"], {"KVGATE_KEY": "k1", "KEY_AGENTS": "k2"})
    assert str(loaded.settings.server.listen).endswith(":8080")
    assert [backend.name for backend in loaded.policy.backends]


def test_by_default_nothing_but_the_api_is_reachable(helm: Path, tmp_path: Path) -> None:
    found = rendered(helm, {}, tmp_path)
    kinds = sorted(kind for kind, _ in found)
    assert kinds == ["ConfigMap", "Deployment", "PodDisruptionBudget", "Secret", "Service"]
    assert [port["targetPort"] for port in found["Service", "demo-kvgate"]["spec"]["ports"]] == ["http"]
    gateway = yaml.safe_load(found["ConfigMap", "demo-kvgate"]["data"]["gateway.yaml"])
    assert gateway["server"]["admin"] == "127.0.0.1:9090"


def test_an_exposed_admin_port_has_a_service_of_its_own_that_the_ingress_does_not_know(
    helm: Path, tmp_path: Path
) -> None:
    found = rendered(helm, VALUES["everything"], tmp_path)
    admin = found["Service", "demo-kvgate-admin"]["spec"]
    assert admin["type"] == "ClusterIP"
    assert [port["targetPort"] for port in admin["ports"]] == ["admin"]
    assert [port["targetPort"] for port in found["Service", "demo-kvgate"]["spec"]["ports"]] == ["http"]
    paths = found["Ingress", "demo-kvgate"]["spec"]["rules"][0]["http"]["paths"]
    assert [path["backend"]["service"]["name"] for path in paths] == ["demo-kvgate"]
    public, closed = found["NetworkPolicy", "demo-kvgate"]["spec"]["ingress"]
    assert "from" not in public
    assert closed["ports"] == [{"port": "admin"}]
    assert closed["from"] == VALUES["everything"]["networkPolicy"]["adminFrom"]


def test_the_ingress_buffers_nothing_and_waits(helm: Path, tmp_path: Path) -> None:
    annotations = rendered(helm, VALUES["everything"], tmp_path)["Ingress", "demo-kvgate"]["metadata"]["annotations"]
    nginx = "nginx.ingress.kubernetes.io/"
    assert annotations[f"{nginx}proxy-buffering"] == "off"
    assert annotations[f"{nginx}proxy-request-buffering"] == "off"
    assert int(annotations[f"{nginx}proxy-read-timeout"]) >= 600


@pytest.mark.parametrize("name", list(VALUES))
def test_streams_end_before_the_kubelet_kills(helm: Path, tmp_path: Path, name: str) -> None:
    found = rendered(helm, VALUES[name], tmp_path)
    pod = found["Deployment", "demo-kvgate"]["spec"]["template"]["spec"]
    gateway = yaml.safe_load(found["ConfigMap", "demo-kvgate"]["data"]["gateway.yaml"])
    drain = int(gateway["server"]["drain"].removesuffix("s"))
    sleep = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] == sleep + drain + 15


def test_probes_ask_the_public_port_and_liveness_never_asks_the_backends(helm: Path, tmp_path: Path) -> None:
    pod = rendered(helm, {}, tmp_path)["Deployment", "demo-kvgate"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert container["livenessProbe"]["httpGet"] == {"path": "/health/live", "port": "http"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/health/ready", "port": "http"}
    assert {"name": "http", "containerPort": 8080} in container["ports"]


def test_the_pod_has_no_rights(helm: Path, tmp_path: Path) -> None:
    pod = rendered(helm, {}, tmp_path)["Deployment", "demo-kvgate"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "cpu" not in pod["containers"][0]["resources"]["limits"]


def test_keys_are_in_the_secret_and_nowhere_else(helm: Path, tmp_path: Path) -> None:
    found = rendered(helm, VALUES["everything"], tmp_path)
    assert [name for name, manifest in found.items() if "sk-agents" in str(manifest)] == []
    assert found["Secret", "demo-kvgate"]["data"] == {"KEY_AGENTS": "c2stYWdlbnRz"}
    pod = found["Deployment", "demo-kvgate"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["envFrom"] == [{"secretRef": {"name": "demo-kvgate"}}]


def test_a_secret_of_ones_own_is_used_as_it_is(helm: Path, tmp_path: Path) -> None:
    found = rendered(helm, VALUES["own secret"], tmp_path)
    assert not any(kind == "Secret" for kind, _ in found)
    pod = found["Deployment", "demo-kvgate"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["envFrom"] == [{"secretRef": {"name": "kvgate-keys"}}]


def test_a_changed_gateway_file_rolls_the_pods_and_an_unchanged_one_does_not(helm: Path, tmp_path: Path) -> None:
    def checksum(values: dict[str, Any]) -> str:
        template = rendered(helm, values, tmp_path)["Deployment", "demo-kvgate"]["spec"]["template"]
        return template["metadata"]["annotations"]["checksum/config"]

    assert checksum({}) == checksum({}) == checksum({"podLabels": {"a": "b"}})
    assert checksum({}) != checksum({"config": {"queue": {"wait": "30s"}}})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"replicas": 2}, "would overbook the engines"),
        ({"config": {"auth": None}}, "config.auth is missing"),
        ({"ingress": {"enabled": True}}, "ingress.hosts is empty"),
        ({"config": {"server": {"listen": "0.0.0.0:1"}}}, "listen"),
        ({"config": {"backends": []}}, "backends"),
        ({"replica": 2}, "replica"),
    ],
)
def test_values_that_cannot_work_are_refused_in_words(
    helm: Path, tmp_path: Path, values: dict[str, Any], words: str
) -> None:
    assert words in refusal(helm, values, tmp_path)


def test_names_fit_in_63_characters(helm: Path, tmp_path: Path) -> None:
    found = rendered(
        helm, VALUES["everything"], tmp_path, release="a-release-of-53-characters-which-is-all-that-helm-has"
    )
    assert max(len(name) for _, name in found) <= 63
