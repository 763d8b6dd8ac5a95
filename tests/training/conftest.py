import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """The models here are so small that a second thread only waits, for long where the machine is busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
