import geoopt
import torch


def manifolds():
    """Riemannian Adam on a ball, and a projection onto orthogonal columns."""
    ball = geoopt.PoincareBall(c=1.0).to("cuda")
    points = geoopt.ManifoldParameter((torch.randn(8, 2) * 0.1).cuda(), manifold=ball)
    target = ball.expmap0(torch.tensor([[0.3, 0.2]], device="cuda"))
    optimizer = geoopt.optim.RiemannianAdam([points], lr=0.01, stabilize=1)
    for _ in range(2):
        ball.dist(points, target).mean().backward()
        optimizer.step()
    columns = geoopt.Stiefel().to("cuda")
    columns.check_point_on_manifold(columns.projx(torch.randn(4, 2).cuda()))
