import subprocess
import sys


def test_importing_the_room_loads_none_of_what_only_training_needs():
    code = (
        "import sys, regard.training; "
        "print([name for name in ('accelerate', 'tensorboard', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
