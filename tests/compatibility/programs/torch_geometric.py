import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, HeteroConv, SAGEConv, TopKPooling, global_mean_pool
from torch_geometric.utils import to_dense_batch


def _graph():
    return Data(
        x=torch.rand(4, 3), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), y=torch.tensor([1])
    )


def convolutions():
    """GCNConv, GATConv and global pooling of a batch."""
    batch = Batch.from_data_list([_graph() for _ in range(3)]).to("cuda")
    hidden = GCNConv(3, 8).to("cuda")(batch.x, batch.edge_index).relu()
    hidden = GATConv(8, 4).to("cuda")(hidden, batch.edge_index)
    global_mean_pool(hidden, batch.batch).sum().item()


def training():
    """A training loop over a loader of graphs."""
    layer, head = SAGEConv(3, 8).to("cuda"), torch.nn.Linear(8, 2).to("cuda")
    optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()])
    for batch in DataLoader([_graph() for _ in range(4)], batch_size=2):
        graphs = batch.to("cuda")
        hidden = layer(graphs.x, graphs.edge_index)
        pooled = global_mean_pool(hidden, graphs.batch, size=graphs.num_graphs)
        torch.nn.functional.cross_entropy(head(pooled), graphs.y).backward()
        optimizer.step()
        optimizer.zero_grad()


def pooling():
    """TopKPooling and a dense batch, whose sizes depend on the data."""
    batch = Batch.from_data_list([_graph() for _ in range(2)]).to("cuda")
    x, _, _, of, _, _ = TopKPooling(3, 0.5).to("cuda")(batch.x, batch.edge_index, batch=batch.batch)
    to_dense_batch(x, of)


def heterogeneous():
    """HeteroConv over two kinds of nodes."""
    data = HeteroData()
    data["a"].x, data["b"].x = torch.rand(3, 2), torch.rand(2, 2)
    data["a", "to", "b"].edge_index = torch.tensor([[0, 1, 2], [0, 1, 1]])
    data = data.to("cuda")
    layer = HeteroConv({("a", "to", "b"): SAGEConv((2, 2), 4)}).to("cuda")
    layer(data.x_dict, data.edge_index_dict)["b"].sum().item()
