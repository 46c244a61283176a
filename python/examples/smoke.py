"""A puff of smoke drifts over a plane; only blocks that it touches have memory: mpiexec -n 2 python3 smoke.py"""

import dnds

grid = dnds.BlockGrid.blocks_of((256, 128), (16, 16), periodic=(True, True))
smoke = grid.sparse_field("smoke", ghosts=1, stages=2, allocation_threshold=1e-9, deallocation_threshold=1e-10)
for b in range(len(smoke)):  # this rank's blocks
    if smoke.box(b)[0] == (32, 64):
        smoke.allocate(b)
        smoke.view(b)[8, 6] = 1

for _ in range(200):
    smoke.exchange_ghosts()  # blocks come and go
    for b in smoke.allocated_blocks:
        u = smoke.view(b, ghosts=True)[:-1, 1:-1]
        smoke.view(b, 1)[...] = u[1:] - 0.5 * (u[1:] - u[:-1])
    smoke.swap_stages()

mass, there = smoke.sums(), grid.comm.allreduce(len(smoke.allocated_blocks))
if grid.comm.rank == 0:
    print(f"{there} of {len(grid.blocks)} blocks have memory, smoke {mass:.6f}")
