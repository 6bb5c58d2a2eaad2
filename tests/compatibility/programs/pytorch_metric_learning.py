import torch
from pytorch_metric_learning import distances, losses, miners, reducers


def mined():
    """Losses of pairs and triplets that miners choose, of classes, and with a memory."""
    layer = torch.nn.Linear(8, 4).to("cuda")
    cosine = distances.CosineSimilarity()
    pairs = miners.MultiSimilarityMiner()
    triplets = miners.TripletMarginMiner(margin=0.2, distance=cosine, type_of_triplets="semihard")
    of_triplets = losses.TripletMarginLoss(distance=cosine, reducer=reducers.ThresholdReducer(low=0))
    of_classes = losses.ArcFaceLoss(3, 4).to("cuda")
    memory = losses.CrossBatchMemory(losses.NTXentLoss(), 4, memory_size=16)
    labels = torch.arange(12).remainder(3).to("cuda")
    for _ in range(2):
        embeddings = layer(torch.randn(12, 8).to("cuda"))
        loss = losses.ContrastiveLoss()(embeddings, labels, pairs(embeddings, labels))
        loss += of_triplets(embeddings, labels, triplets(embeddings, labels))
        loss += of_classes(embeddings, labels) + memory(embeddings, labels)
        loss.backward()
