"""`python -m lockstep`: the command."""

from lockstep.command import main

main()
