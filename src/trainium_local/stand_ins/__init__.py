"""Simulates nodes, because the instances of the embedded AWS run no programs."""


def install(*, fail_nodes: int) -> None:
    """Simulate every node that is launched later.

    Args:
        fail_nodes: Number of nodes, from the first launch on, that report a missing device.
    """
    from trainium_local.services import auto_scaling, clock_control, event_bridge
    from trainium_local.stand_ins.jobs import StandInJobs
    from trainium_local.stand_ins.nodes import StandInNodes

    nodes = StandInNodes(failing=fail_nodes)
    auto_scaling.when_launched(nodes.handle_launch)
    clock_control.when_put_forward(nodes.write_usage)
    nodes.keep_writing_usage()
    event_bridge.when_emitted(nodes.handle_event)
    event_bridge.when_emitted(StandInJobs(nodes.is_verified).handle_event)
