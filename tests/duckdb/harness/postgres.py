"""A PostgreSQL of its own for a scenario, where the machine has the programs of one."""

import glob
import os
import pwd
import shutil
import socket
import subprocess

START_SECONDS_MAX = 60


def programs():
    """The folder of `initdb` and `pg_ctl`; None where there is none, or nobody who may run them."""
    found = shutil.which("initdb")
    folders = [os.path.dirname(found)] if found else []
    folders += sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    for folder in folders:
        if os.path.exists(os.path.join(folder, "initdb")) and (os.geteuid() != 0 or owner() is not None):
            return folder
    return None


def owner():
    """PostgreSQL does not run as root: the user it runs as instead."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return None


class Cluster:
    """A cluster in a directory, on a loopback port that was free, for as long as the `with` lasts."""

    def __init__(self, directory):
        self.directory = os.path.join(directory, "postgres")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def connection(self, database="postgres"):
        """The connection string of a database of the cluster."""
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"

    def run(self, program, *arguments):
        """Runs a program of PostgreSQL as who it may run as."""
        command = [os.path.join(programs(), program), *arguments]
        subprocess.run(
            command, check=True, user=owner(), cwd=self.directory, stdout=subprocess.DEVNULL, timeout=START_SECONDS_MAX
        )

    def __enter__(self):
        os.makedirs(self.directory)
        if owner() is not None:
            # The user needs a way to its folder, through those of the scenario.
            shutil.chown(self.directory, owner())
            os.chmod(os.path.dirname(self.directory), 0o755)
        data = os.path.join(self.directory, "data")
        self.run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self.run("pg_ctl", "-D", data, "-w", "-l", os.path.join(self.directory, "log"), "-o", options, "start")
        return self

    def __exit__(self, *_):
        self.run("pg_ctl", "-D", os.path.join(self.directory, "data"), "-m", "immediate", "stop")
