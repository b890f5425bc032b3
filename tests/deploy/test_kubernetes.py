"""What kustomize and Helm make of deploy/, against the schemas that Kubernetes publishes."""

from __future__ import annotations

import copy
import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.config import loader
from deploy import tools
from lakehouse.cli.weekly import settings_in, weekly as weekly_command

ROOT = Path(__file__).parents[2]
OVERLAYS = ROOT / "deploy/kubernetes/overlays"
VERSIONS = ("1.31", "1.34", "1.37")
NOT_KUBERNETES = {"KafkaUser"}
CHART = ROOT / "deploy/helm"
VALUES: dict[str, Any] = {
    "config": {
        "sources": [
            {
                "node": "every",
                "jmx": {
                    "host": "{host}",
                    "port": 9999,
                    "user": "monitor",
                    "password_env": "JMX_PASSWORD",
                },
            }
        ],
        "admin": {
            "bootstrap": "kafka:9093",
            "libs": "/opt/kafka/libs",
            "properties_file": "/etc/kafka-user/client.properties",
        },
        "lake": {"path": "s3://observability/kafka"},
    },
    "env": [
        {
            "name": "JMX_PASSWORD",
            "valueFrom": {"secretKeyRef": {"name": "kafka-jmx", "key": "password"}},
        }
    ],
    "envFrom": [{"secretRef": {"name": "jmxlake-lake"}}],
    "mounts": {"/etc/kafka-user": "kafka-user"},
    "image": {"pullSecrets": ["registry"]},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/lake"}},
    "spool": {"size": "4Gi", "storageClass": "fast"},
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "observability", "operator": "Exists"}],
}
"""Every value of the chart, another than its default."""


def printed(*command: object) -> str:
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="session")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("helm") / "values.yaml"
    file.write_text(yaml.safe_dump(VALUES))
    return file


@pytest.fixture(scope="session")
def built(values: Path) -> dict[str, list[dict[str, Any]]]:
    template = ("template", "kafka-prod", CHART, "--values", values, "--kube-version", VERSIONS[0])
    made = {
        overlay: printed(tools.kustomize(), "build", OVERLAYS / overlay)
        for overlay in ("statefulset", "strimzi")
    } | {"helm": printed(tools.helm(), *template)}
    return {name: list(yaml.safe_load_all(text)) for name, text in made.items()}


def found(resources: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (one,) = (one for one in resources
              if one["kind"] == kind and one["metadata"]["name"].startswith(name))  # fmt: skip
    return one


def agent(resources: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pod that an agent is in, and the agent's container."""
    for one in resources:
        if one["kind"] == "StatefulSet":
            pod = one["spec"]["template"]["spec"]
            for container in [*pod["containers"], *pod.get("initContainers", [])]:
                if container["name"] == "jmxlake-agent":
                    return pod, container
    raise AssertionError("no agent in it")


def complaints(resources: list[dict[str, Any]], version: str, folder: Path) -> list[str]:
    file = folder / "all.yaml"
    file.write_text(yaml.safe_dump_all(resources))
    ran = subprocess.run(
        [str(tools.program("kubernetes-validate")), "--strict", "-k", version, str(file)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = (ran.stdout + ran.stderr).splitlines()
    assert said
    return [line for line in said if not line.startswith("INFO ")]


@pytest.mark.parametrize("overlay", ["statefulset", "strimzi", "helm"])
@pytest.mark.parametrize("version", VERSIONS)
def test_every_resource_is_as_kubernetes_wants_it(
    built: dict[str, list[dict[str, Any]]], overlay: str, version: str, tmp_path: Path
) -> None:
    ours = [one for one in built[overlay] if one["kind"] not in NOT_KUBERNETES]
    assert len(ours) >= 4
    assert complaints(ours, version, tmp_path) == []
    wrong = copy.deepcopy(ours)
    agent(wrong)[1]["livenesProbe"] = {}
    assert "livenesProbe" in "".join(complaints(wrong, version, tmp_path))


@pytest.mark.parametrize(
    ("overlay", "host"),
    [("statefulset", "127.0.0.1"), ("strimzi", "my-cluster-broker-4.my-cluster-kafka-brokers")],
)
def test_the_agent_takes_its_configuration(
    built: dict[str, list[dict[str, Any]]], overlay: str, host: str
) -> None:
    _, container = agent(built[overlay])
    environ: dict[str, str] = {}
    for one in container["env"]:
        if "fieldRef" in one.get("valueFrom", {}):
            value = "4"  # what Kubernetes puts there
            assert "pod-index" in one["valueFrom"]["fieldRef"]["fieldPath"]
        else:
            value = one.get("value", "from-a-secret")
        for name, known in environ.items():  # names that are not known yet stay as they are
            value = value.replace(f"$({name})", known)
        assert "$(" not in value, one
        environ[one["name"]] = value
    file = found(built[overlay], "ConfigMap", "jmxlake-agent-")["data"]["agent.yaml"]
    told = loader.parse(yaml.safe_load(file), "agent.yaml", environ)
    assert told.source.jmx is not None
    assert (told.source.node, told.source.jmx.host) == (4, host)
    assert told.source.jmx.password_env in environ
    mounts = [Path(one["mountPath"]) for one in container["volumeMounts"]]
    assert told.spool.path.parent in mounts
    assert told.admin is not None
    assert told.admin.libs == Path("/opt/kafka/libs"), "where the image has them"
    if overlay == "strimzi":
        assert told.admin.properties_file is not None
        assert told.admin.properties_file.parent in mounts
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert ports[container["livenessProbe"]["httpGet"]["port"]] == told.health.port
    assert told.health.host == "0.0.0.0"  # noqa: S104 - the kubelet asks from outside of the pod


@pytest.mark.parametrize("overlay", ["statefulset", "strimzi", "helm"])
def test_the_agent_may_little(built: dict[str, list[dict[str, Any]]], overlay: str) -> None:
    pod, container = agent(built[overlay])
    may = {**pod.get("securityContext", {}), **container["securityContext"]}
    assert may["runAsNonRoot"]
    assert may["readOnlyRootFilesystem"]
    assert may["allowPrivilegeEscalation"] is False
    assert may["capabilities"] == {"drop": ["ALL"]}
    assert may["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["resources"]["limits"]["memory"] == "512Mi"
    (account,) = (one for one in built[overlay] if one["kind"] == "ServiceAccount")
    assert not account["automountServiceAccountToken"]
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    for one in container["env"]:
        assert "PASSWORD" not in one["name"] or "secretKeyRef" in one["valueFrom"]


@pytest.mark.parametrize("overlay", ["statefulset", "strimzi", "helm"])
def test_what_is_mounted_is_there(built: dict[str, list[dict[str, Any]]], overlay: str) -> None:
    maps = {one["metadata"]["name"] for one in built[overlay] if one["kind"] == "ConfigMap"}
    pod, container = agent(built[overlay])
    volumes = {one["name"]: one for one in pod["volumes"]}
    claims = {one["metadata"]["name"] for each in built[overlay] if each["kind"] == "StatefulSet"
              for one in each["spec"].get("volumeClaimTemplates", [])}  # fmt: skip
    for mount in container["volumeMounts"]:
        assert mount["name"] in {*volumes, *claims}
    assert {one["configMap"]["name"] for one in volumes.values() if "configMap" in one} <= maps
    assert container["image"].startswith("registry.example.com/jmxlake-agent:")


def test_a_broker_does_not_depend_on_who_watches_it(
    built: dict[str, list[dict[str, Any]]],
) -> None:
    pod, container = agent(built["statefulset"])
    assert container in pod["initContainers"]
    assert container["restartPolicy"] == "Always"  # a sidecar, not a step before the broker
    assert "readinessProbe" not in container
    assert "startupProbe" not in container  # the broker would wait for it
    assert [one["name"] for one in pod["containers"]] == ["kafka"]


def test_strimzi_s_names_are_of_one_cluster(built: dict[str, list[dict[str, Any]]]) -> None:
    user = found(built["strimzi"], "KafkaUser", "jmxlake-agent")
    cluster = user["metadata"]["labels"]["strimzi.io/cluster"]
    pod, container = agent(built["strimzi"])
    assert {"name": "CLUSTER", "value": cluster} in container["env"]
    secrets = {one["valueFrom"]["secretKeyRef"]["name"] for one in container["env"]
               if "secretKeyRef" in one.get("valueFrom", {})}  # fmt: skip
    assert secrets == {f"{cluster}-kafka-jmx"}
    mounted = {one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one}
    assert mounted == {user["metadata"]["name"], f"{cluster}-cluster-ca-cert"}
    allowed = {each for one in user["spec"]["authorization"]["acls"] for each in one["operations"]}
    assert allowed == {"Describe", "DescribeConfigs"}


def test_the_containerfile_is_clean_and_of_the_sidecar_s_user(
    built: dict[str, list[dict[str, Any]]],
) -> None:
    file = ROOT / "deploy/Containerfile"
    for one in (file, file.with_suffix(".weekly"), file.with_suffix(".spark")):
        ran = subprocess.run(
            [str(tools.program("hadolint")), str(one)], capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stdout) == (0, "")
    _, container = agent(built["statefulset"])
    user = container["securityContext"]["runAsUser"]
    text = file.read_text("utf-8")
    assert f"USER {user}:{user}" in text
    assert f"useradd --uid {user} " in text


def test_the_chart_gives_the_agent_its_configuration(
    built: dict[str, list[dict[str, Any]]],
) -> None:
    pod, container = agent(built["helm"])
    (config,) = (one for one in built["helm"] if one["kind"] == "ConfigMap")
    read = loader.parse(yaml.safe_load(config["data"]["agent.yaml"]), "agent.yaml", {})
    mounts = {Path(one["mountPath"]): one["name"] for one in container["volumeMounts"]}
    (source,) = read.sources
    assert source.jmx is not None
    assert source.jmx.password_env in {one["name"] for one in container["env"]}
    assert read.spool.path.parent in mounts
    assert read.spool.max_size == 2 << 30, "half of the volume"
    assert read.lake.path == "s3://observability/kafka"
    assert read.admin is not None
    assert read.admin.properties_file is not None
    volume = mounts[read.admin.properties_file.parent]
    (secret,) = (one["secret"] for one in pod["volumes"] if one["name"] == volume)
    assert secret["secretName"] == "kafka-user"
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert ports[container["livenessProbe"]["httpGet"]["port"]] == read.health.port


def test_values_for_strimzi_make_an_agent(tmp_path: Path) -> None:
    page = (ROOT / "docs/platforms.md").read_text("utf-8")
    blocks = [textwrap.dedent(one.split("```")[0]) for one in page.split("```yaml\n")[1:]]
    values, by_exporter = (yaml.safe_load(one) for one in blocks if "config:" in one)
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    template = ("template", "jmxlake", CHART, "-f", file, "--kube-version", VERSIONS[0])
    made = [*yaml.safe_load_all(printed(tools.helm(), *template))]
    (config,) = (one["data"]["agent.yaml"] for one in made if one["kind"] == "ConfigMap")
    read = loader.parse(yaml.safe_load(config), "agent.yaml", {})
    assert read.admin is not None
    pod, container = agent(made)
    mounts = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    properties = (OVERLAYS / "strimzi/client.properties").read_text()
    for folder in ("/etc/kafka", *re.findall(r"\$\{dir:([^:]+):", properties)):
        assert folder in mounts, "client.properties reads it"
    assert pod["serviceAccountName"] == "jmxlake-agent"
    assert f"{pod['serviceAccountName']}-0 -- " in page, "so the pod is called"
    values["config"] |= by_exporter["config"]
    loader.parse(values["config"] | {"spool": {"path": "/s"}}, "agent.yaml", {})


def test_the_chart_is_one_that_helm_lints(values: Path) -> None:
    said = printed(tools.helm(), "lint", "--strict", CHART, "--values", values)
    assert "0 chart(s) failed" in said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("config.lake.path=", "'/config/lake/path'"),
        ("config.spool.path=/x", "'/config'"),
        ("imgae.tag=1", "'imgae' not allowed"),
        ("spool.size=two", "'/spool/size'"),
    ],
)
def test_values_that_cannot_work_are_refused(values: Path, wrong: str, said: str) -> None:
    ran = subprocess.run(
        [str(tools.helm()), "template", "x", str(CHART), "-f", str(values), "--set", wrong],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 1
    assert said in ran.stderr


def test_a_configuration_without_a_source_is_refused() -> None:
    wrong = ("template", "x", CHART, "--set", "config.lake.path=s3://b/k")
    ran = subprocess.run(
        [*map(str, (tools.helm(), *wrong))], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "'anyOf' failed" in ran.stderr


# The weekly report.

WEEKLY: dict[str, Any] = {
    "enabled": True,
    "schedule": "0 7 * * 1",
    "timeZone": "Europe/Berlin",
    "image": {"repository": "registry.example.com/our-jmxlake", "tag": "1.2.3"},
    "config": {
        "time_zone": "Europe/Berlin",
        "every_cluster": "/var/lib/jmxlake/reports/{week}",
        "send": {"webhook": {"format": "teams", "url_file": "/etc/jmxlake-secrets/webhook"}},
    },
    "env": [{"name": "AWS_REGION", "value": "eu-central-1"}],
    "envFrom": [{"secretRef": {"name": "jmxlake-gold"}}],
    "mounts": {"/etc/jmxlake-secrets": "jmxlake-chat"},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/gold"}},
    "reportsClaim": "kafka-reports",
    "scratch": "20Gi",
    "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "8Gi"}},
}
"""Every value of the weekly report, another than its default."""


@pytest.fixture(scope="session")
def weekly(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The resources that the weekly report adds to a release."""
    file = tmp_path_factory.mktemp("helm") / "values.yaml"
    file.write_text(yaml.safe_dump(VALUES | {"weekly": WEEKLY}))
    template = ("template", "kafka-prod", CHART, "--values", file, "--kube-version", VERSIONS[0])
    made = yaml.safe_load_all(printed(tools.helm(), *template))
    return [one for one in made if one["metadata"]["name"] == "kafka-prod-weekly"]


def weekly_pod(resources: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    job = found(resources, "CronJob", "kafka-prod-weekly")["spec"]["jobTemplate"]["spec"]
    pod: dict[str, Any] = job["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


@pytest.mark.parametrize("version", VERSIONS)
def test_weekly_is_as_kubernetes_wants_it(
    weekly: list[dict[str, Any]], version: str, tmp_path: Path
) -> None:
    kinds = {one["kind"] for one in weekly}
    assert kinds == {"CronJob", "ConfigMap", "ServiceAccount", "NetworkPolicy"}
    assert complaints(weekly, version, tmp_path) == []
    wrong = copy.deepcopy(weekly)
    weekly_pod(wrong)[1]["comand"] = []
    assert "comand" in "".join(complaints(wrong, version, tmp_path))


def test_weekly_is_off_by_default(built: dict[str, list[dict[str, Any]]]) -> None:
    assert not [one for one in built["helm"] if "weekly" in one["metadata"]["name"]]


def test_weekly_runs_once_at_a_time_and_sends_nothing_twice(weekly: list[dict[str, Any]]) -> None:
    spec = found(weekly, "CronJob", "kafka-prod-weekly")["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert (spec["schedule"], spec["timeZone"]) == ("0 7 * * 1", "Europe/Berlin")
    job = spec["jobTemplate"]["spec"]
    assert job["activeDeadlineSeconds"] > 0
    (rule,) = job["podFailurePolicy"]["rules"]
    codes = rule["onExitCodes"]
    assert rule["action"] == "FailJob"
    assert (codes["operator"], codes["values"]) == ("NotIn", [0, 3]), "3: a rollup is running"
    pod, container = weekly_pod(weekly)
    assert codes["containerName"] == container["name"]
    assert pod["restartPolicy"] == "Never", "as the policy needs it"


def test_weekly_may_little(weekly: list[dict[str, Any]]) -> None:
    pod, container = weekly_pod(weekly)
    may = {**pod["securityContext"], **container["securityContext"]}
    assert may["runAsNonRoot"]
    assert may["readOnlyRootFilesystem"]
    assert may["allowPrivilegeEscalation"] is False
    assert may["capabilities"] == {"drop": ["ALL"]}
    assert may["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["resources"]["limits"]["memory"] == "8Gi"
    assert pod["automountServiceAccountToken"] is False
    account = found(weekly, "ServiceAccount", "kafka-prod-weekly")
    assert account["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] == account["metadata"]["name"], (
        "not the agent's, with its role"
    )
    policy = found(weekly, "NetworkPolicy", "kafka-prod-weekly")["spec"]
    assert (policy["policyTypes"], policy.get("ingress")) == (["Ingress"], None)


def test_weekly_command_takes_its_file_and_finds_what_it_names(
    weekly: list[dict[str, Any]], tmp_path: Path
) -> None:
    pod, container = weekly_pod(weekly)
    volumes = {one["name"]: one for one in pod["volumes"]}
    mounts = {one["mountPath"]: volumes[one["name"]] for one in container["volumeMounts"]}
    name, option, path = container["args"]
    assert (name, option) == ("weekly", "--config")
    config = found(weekly, "ConfigMap", "kafka-prod-weekly")
    assert mounts[str(Path(path).parent)]["configMap"]["name"] == config["metadata"]["name"]
    file = tmp_path / "weekly.yaml"
    file.write_text(config["data"][Path(path).name])
    context = weekly_command.make_context(name, [option, str(file)])
    assert context.params["root"] == VALUES["config"]["lake"]["path"]
    sent = settings_in(context)
    assert sent is not None
    assert sent.webhook is not None
    folder = str(Path(str(sent.webhook.url_file)).parent)
    assert mounts[folder]["secret"]["secretName"] == "jmxlake-chat"
    reports = str(context.params["every_cluster"].parent)
    assert mounts[reports]["persistentVolumeClaim"]["claimName"] == "kafka-reports"
    assert mounts["/tmp"]["emptyDir"]["sizeLimit"] == "20Gi"  # noqa: S108 - the pod's own
    assert container["image"] == "registry.example.com/our-jmxlake:1.2.3"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("weekly.config.lake=s3://x/y", "'/weekly/config'"),
        ("weekly.schedule=monday", "'/weekly/schedule'"),
        ("weekly.enable=true", "'enable' not allowed"),
    ],
)
def test_weekly_values_that_cannot_work_are_refused(values: Path, wrong: str, said: str) -> None:
    test_values_that_cannot_work_are_refused(values, wrong, said)
