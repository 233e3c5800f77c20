"""The operations of AWS PCS, in the form of its API."""

import json
from typing import Any

from moto.core.responses import ActionResult, BaseResponse
from moto.utilities.tagging_service import TaggingService

from trainium_local.pcs.models import GROUP, QUEUE, Fields, PcsBackend, pcs_backends


class PcsResponse(BaseResponse):
    """One method for each supported operation. moto finds the method by the name of the operation."""

    def __init__(self) -> None:
        super().__init__(service_name="pcs")

    @property
    def _pcs(self) -> PcsBackend:
        return pcs_backends[self.current_account][self.region]

    @property
    def _arguments(self) -> Fields:
        return json.loads(self.body or "{}")

    def create_cluster(self) -> ActionResult:
        return ActionResult({"cluster": self._pcs.create_cluster(self._arguments)})

    def get_cluster(self) -> ActionResult:
        return ActionResult({"cluster": self._pcs.cluster(self._arguments)})

    def update_cluster(self) -> ActionResult:
        return ActionResult({"cluster": self._pcs.update_cluster(self._arguments)})

    def delete_cluster(self) -> ActionResult:
        self._pcs.delete_cluster(self._arguments)
        return ActionResult({})

    def list_clusters(self) -> ActionResult:
        return ActionResult({"clusters": [*self._pcs.clusters.values()]})

    def create_compute_node_group(self) -> ActionResult:
        return ActionResult({"computeNodeGroup": self._pcs.create_group(self._arguments)})

    def get_compute_node_group(self) -> ActionResult:
        return ActionResult({"computeNodeGroup": self._pcs.part(GROUP, self._arguments)})

    def update_compute_node_group(self) -> ActionResult:
        return ActionResult({"computeNodeGroup": self._pcs.update_part(GROUP, self._arguments)})

    def delete_compute_node_group(self) -> ActionResult:
        self._pcs.delete_part(GROUP, self._arguments)
        return ActionResult({})

    def list_compute_node_groups(self) -> ActionResult:
        return ActionResult({"computeNodeGroups": self._pcs.list_parts(GROUP, self._arguments)})

    def create_queue(self) -> ActionResult:
        return ActionResult({"queue": self._pcs.create_queue(self._arguments)})

    def update_queue(self) -> ActionResult:
        return ActionResult({"queue": self._pcs.update_part(QUEUE, self._arguments)})

    def delete_queue(self) -> ActionResult:
        self._pcs.delete_part(QUEUE, self._arguments)
        return ActionResult({})

    def list_queues(self) -> ActionResult:
        return ActionResult({"queues": self._pcs.list_parts(QUEUE, self._arguments)})

    def list_tags_for_resource(self) -> ActionResult:
        tags: Any = self._pcs.tagger.get_tag_dict_for_resource(self._arguments["resourceArn"])
        return ActionResult({"tags": tags})

    def tag_resource(self) -> ActionResult:
        tags = TaggingService.convert_dict_to_tags_input(self._arguments["tags"])
        self._pcs.tagger.tag_resource(self._arguments["resourceArn"], tags)
        return ActionResult({})

    def untag_resource(self) -> ActionResult:
        self._pcs.tagger.untag_resource_using_names(self._arguments["resourceArn"], self._arguments["tagKeys"])
        return ActionResult({})
