#!/bin/sh
set -e

# An upgrade restarts the units at its end. dpkg passes remove, rpm 0 for the last version.
case "$1" in remove | 0) ;; *) exit 0 ;; esac

if [ -d /run/systemd/system ]; then
    systemctl disable --now jmxlake-agent.service jmxlake-maintain.service jmxlake-rollup.service \
        jmxlake-weekly.timer
    # Agents of a template unit (docs/install.md); disable does not support patterns.
    systemctl list-units --all --plain --no-legend 'jmxlake-agent@*.service' |
        while read -r unit _; do systemctl disable --now "$unit"; done
fi
