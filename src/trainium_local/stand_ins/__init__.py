"""Simulates the nodes: the instances of the embedded AWS run nothing."""


def install(*, fail_nodes: int) -> None:
    """Simulate every node that is launched later.

    Args:
        fail_nodes: How many nodes, from the first one on, report a missing device.
    """
    from trainium_local.services import auto_scaling, clock_control, event_bridge
    from trainium_local.stand_ins.jobs import StandInJobs
    from trainium_local.stand_ins.nodes import StandInNodes

    nodes = StandInNodes(failing=fail_nodes)
    auto_scaling.when_launched(nodes.launched)
    clock_control.when_put_forward(nodes.write_usage)
    nodes.keep_writing_usage()
    event_bridge.when_emitted(nodes.handle_event)
    jobs = StandInJobs(nodes.is_proven)
    auto_scaling.when_launched(jobs.launched)
    event_bridge.when_emitted(jobs.handle_event)
