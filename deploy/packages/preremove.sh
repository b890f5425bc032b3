#!/bin/sh
set -e

# An upgrade restarts the units at its end. dpkg passes remove, rpm 0 for the last version.
case "$1" in remove | 0) ;; *) exit 0 ;; esac

if [ -d /run/systemd/system ]; then
    systemctl disable --now jmxlake-agent.service jmxlake-maintain.service jmxlake-rollup.service \
        jmxlake-weekly.timer
fi
