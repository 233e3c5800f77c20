"""The node lab imitates software that exists."""

from tools.lab.neuron_software import default_image, neuron_software
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.catalog.neuron_software import default_image as image_of_plans
from trainium_core.catalog.neuron_software import parameter_framework


def test_default_image_has_packages_of_the_last_release_with_its_framework() -> None:
    framework = parameter_framework(image_of_plans(builtin_catalog()["trn1.32xlarge"]))
    assert framework
    image = default_image()
    versions = {package.name: package.version for package in neuron_software(image["packages"])}
    # The packages of Neuron's tools have the version of the release.
    assert {version.rsplit(".", 1)[0] for version in (image["neuron_sdk"], versions["aws-neuronx-tools"][:-2])} == {
        framework.last_release
    }
