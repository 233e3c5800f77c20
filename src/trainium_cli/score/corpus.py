"""What is measured: the templates, CDK apps and wrong deployments below a folder, and why some are left out."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml

from trainium_cli.score.parameters import NEW_ACCOUNT, values
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.template import Template, read

TEMPLATE_SUFFIXES = (".yaml", ".yml", ".json", ".template")
IGNORED_FOLDERS = re.compile(r"(node_modules|cdk\.out|\..*)$")
NOT_NEEDED_TO_SYNTHESISE = re.compile(r"(types-|pytest|awscli)")
DOCKER = re.compile(
    r"DockerImage|from_asset_image|from_image_asset|ContainerImage\.from_asset|bundling|aws_lambda_python"
)
NAMES_WHAT_EXISTS = ("Bucket", "DestinationBucketName", "IamInstanceProfile", "KeyName")
"""Properties that take the name of what is there already, or of what the template makes."""
Named = TypeVar("Named")
OTHER_ACCOUNT = re.compile(r"account\s*=\s*[\"']\w")


@dataclass(frozen=True, kw_only=True)
class App:
    """A CDK app: the folder of its cdk.json."""

    name: str
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A template that is to deploy."""

    name: str
    template: Template


@dataclass(frozen=True, kw_only=True)
class WrongDeployment:
    """A deployment that has to be refused, with a reason that contains `refused`.

    update: what has to be refused, as an update of `template`, which then has to deploy. valid: a twin that has to
    deploy: whoever refuses it too has refused nothing.
    """

    name: str
    refused: str
    template: Mapping[str, Any]
    area: str = ""
    source: str = ""
    update: Mapping[str, Any] | None = None
    valid: Mapping[str, Any] | None = None
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """left_out: how many templates and apps are not tried, by the reason."""

    templates: tuple[Deployment, ...]
    apps: tuple[App, ...]
    wrong: tuple[WrongDeployment, ...]
    left_out: Mapping[str, int]


def read_corpus(folder: Path, *, sample: int | None = None) -> Corpus:
    """What is below `folder`. sample: at most so many templates and so many apps.

    Both are in the order of the hashes of their paths in the folder, which no author has chosen.
    """
    left_out: Counter[str] = Counter()
    documents = dict(_documents(folder))
    templates = [
        Deployment(name=name, template=template)
        for name, template in _by_hash(_distinct(documents))
        if not _counted(left_out, _template_needs(template))
    ]
    folders = {_name(path.parent, folder): path.parent for path in folder.rglob("cdk.json") if _is_read(path, folder)}
    apps = [App(name=name, folder=path) for name, path in _by_hash(folders) if not _counted(left_out, _app_needs(path))]
    return Corpus(
        templates=tuple(templates[:sample]),
        apps=tuple(apps[:sample]),
        wrong=tuple(case for document in documents.values() if isinstance(document, list) for case in document),
        left_out=left_out,
    )


def _documents(folder: Path) -> Iterator[tuple[str, Template | list[WrongDeployment]]]:
    """The templates and lists of wrong deployments by their paths; any other file is passed over."""
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*"))
    for path in paths:
        if path.suffix in TEMPLATE_SUFFIXES and path.is_file() and _is_read(path, folder):
            document = _document(path)
            if document is not None:
                yield _name(path, folder), document


def _document(path: Path) -> Template | list[WrongDeployment] | None:
    try:
        text = path.read_text()
        if "Resources" not in text:  # most files of a repository; parsing them takes longer than all else
            return None
        if re.search(r"^- name:", text, re.MULTILINE):
            return [WrongDeployment(**case) for case in yaml.safe_load(text)]
        # Unchecked: what the embedded AWS refuses in a template must not decide what is measured.
        template = Template(text, read(text))
        types = [one["Type"] for name, one in template.resources.items() if not name.startswith("Fn::")]
    except (ValidationError, UnicodeDecodeError, yaml.YAMLError, AttributeError, TypeError, KeyError):
        return None
    return template if any("::" in str(one) for one in types) else None


def _distinct(documents: Mapping[str, Template | list[WrongDeployment]]) -> dict[str, Template]:
    """The templates without copies: the same text again, or the same name with another suffix beside it."""
    seen: set[str] = set()
    found: dict[str, Template] = {}
    for name, document in sorted(documents.items(), key=lambda one: (Path(one[0]).suffix == ".json", one[0])):
        if isinstance(document, Template) and not seen & {document.body, str(Path(name).with_suffix(""))}:
            found[name] = document
            seen |= {document.body, str(Path(name).with_suffix(""))}
    return found


def _by_hash(named: Mapping[str, Named]) -> list[tuple[str, Named]]:
    return sorted(named.items(), key=lambda one: sha256(one[0].encode()).digest())


def _counted(left_out: Counter[str], reason: str) -> bool:
    if reason:
        left_out[reason] += 1
    return bool(reason)


def _is_read(path: Path, folder: Path) -> bool:
    return path == folder or not any(IGNORED_FOLDERS.match(part) for part in path.relative_to(folder).parts[:-1])


def _name(path: Path, folder: Path) -> str:
    return path.name if path == folder else str(path.relative_to(folder))


def _template_needs(template: Template) -> str:
    """What a template needs that a new account has not, or ""."""
    text = str(template.document)
    resources = [one for name, one in template.resources.items() if not name.startswith("Fn::")]
    types = {str(one.get("Type")) for one in resources}
    if "Rain::" in text:
        return "a preprocessor"
    if re.search(r"'(ami|vpc|subnet|sg)-[0-9a-f]{8,17}'", str({**template.document, "Parameters": None})):
        return "identifiers of one account"
    if "'Fn::Transform'" in text or _transforms(template) - {"AWS::LanguageExtensions"}:
        return "macros"
    if "'Fn::ImportValue'" in text:
        return "exports of another stack"
    if any("::MODULE" in one or not one.startswith(("AWS::", "Custom::", "None")) for one in types):
        return "modules or types of a private registry"
    if types & {"AWS::CloudFormation::Stack", "AWS::CloudFormation::StackSet"}:
        return "templates in a bucket"
    if any("S3Bucket" in str(_code(one)) for one in resources):
        return "code in a bucket"
    if re.search(r"resolve:(ssm|ssm-secure|secretsmanager):(?!/aws/)[^:$}{]+[:}]", text):
        return "values stored in the account"
    if _names_of_existing(template):
        return "parameters that name something in the account"
    try:
        values(template.parameters, NEW_ACCOUNT)
    except LookupError:
        return "parameters that name something in the account"
    return ""


def _names_of_existing(template: Template) -> set[str]:
    """The parameters whose texts stand only where the name of something that exists can, and are not given to it."""
    used = set(_parameters_by_property(template.resources))
    needing = {parameter for name, parameter in used if name in NAMES_WHAT_EXISTS}
    given = {parameter for name, parameter in used if name.endswith("Name") and name not in NAMES_WHAT_EXISTS}
    texts = {name for name, one in template.parameters.items() if one.get("Type") == "String"}
    return {name for name in (needing - given) & texts if not NEW_ACCOUNT.of(name, "String")}


def _parameters_by_property(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _parameters_by_property(one, name)
    elif isinstance(value, dict):
        for key, one in cast("dict[str, Any]", value).items():
            if key == "Ref":
                yield name, str(one)
            else:
                yield from _parameters_by_property(one, key)


def _transforms(template: Template) -> set[str]:
    given: Any = template.document.get("Transform") or []
    return {given} if isinstance(given, str) else set(map(str, given))


def _code(resource: Mapping[str, Any]) -> Any:
    properties: Mapping[str, Any] = resource.get("Properties") or {}
    wanted = {"AWS::Lambda::Function": "Code", "AWS::Lambda::LayerVersion": "Content"}
    return properties.get(wanted.get(str(resource.get("Type")), ""))


def _app_needs(folder: Path) -> str:
    """What a CDK app needs that is not here, or ""."""
    if not (folder / "requirements.txt").exists():
        return "another language than Python"
    if not all(map(_installed, (folder / "requirements.txt").read_text().splitlines())):
        return "packages that are not installed"
    sources = "\n".join(path.read_text(errors="replace") for path in folder.rglob("*.py") if _is_read(path, folder))
    if DOCKER.search(sources):
        return "Docker"
    return "another account" if OTHER_ACCOUNT.search(sources) else ""


def _installed(requirement: str) -> bool:
    name = re.match(r"\s*([\w.-]*)", requirement)
    if name is None or not name[1] or name[1].startswith("-") or NOT_NEEDED_TO_SYNTHESISE.match(name[1]):
        return True
    try:
        found = version(name[1])
    except PackageNotFoundError:
        return False
    below, exactly = re.search(r"<\s*(\d+)", requirement), re.search(r"==\s*([\w.]+)", requirement)
    too_new = below is not None and int(found.split(".")[0]) >= int(below[1])
    return not too_new and (exactly is None or exactly[1] == found)
