import torch
from diffusers import AutoencoderKL, DDIMScheduler, DDPMPipeline, DDPMScheduler, UNet2DModel
from diffusers.training_utils import EMAModel


def _unet():
    return UNet2DModel(
        sample_size=8,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(8, 8),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )


def pipeline():
    """DDPMPipeline: images as arrays."""
    images = DDPMPipeline(_unet(), DDPMScheduler(num_train_timesteps=4)).to("cuda")
    images.set_progress_bar_config(disable=True)
    assert images(batch_size=1, num_inference_steps=2, output_type="np").images.shape == (1, 8, 8, 3)


def training():
    """A training step of a UNet, with a moving average of its weights."""
    model, scheduler = _unet().to("cuda"), DDPMScheduler(num_train_timesteps=4)
    optimizer, average = torch.optim.AdamW(model.parameters()), EMAModel(model.parameters())
    clean, noise = torch.rand(2, 3, 8, 8, device="cuda"), torch.randn(2, 3, 8, 8, device="cuda")
    steps = torch.randint(0, 4, (2,), device="cuda")
    predicted = model(scheduler.add_noise(clean, noise, steps), steps).sample
    torch.nn.functional.mse_loss(predicted, noise).backward()
    optimizer.step()
    average.to("cuda")
    average.step(model.parameters())


def scheduler():
    """DDIMScheduler: a loop over its time steps."""
    steps = DDIMScheduler(num_train_timesteps=10)
    steps.set_timesteps(3, device="cuda")
    sample = torch.randn(1, 3, 8, 8, device="cuda")
    for step in steps.timesteps:
        sample = steps.step(torch.zeros_like(sample), step, sample).prev_sample


def autoencoder():
    """AutoencoderKL: encode, sample, decode."""
    model = AutoencoderKL(block_out_channels=(8,), norm_num_groups=4, latent_channels=2).to("cuda")
    latent = model.encode(torch.rand(1, 3, 8, 8, device="cuda")).latent_dist.sample()
    model.decode(latent).sample.mean().item()
