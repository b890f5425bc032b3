#!/bin/sh
set -e

# dpkg passes the name of the action, rpm the number of installed versions.
case "$1" in configure | [0-9]*) ;; *) exit 0 ;; esac

if ! getent passwd jmxlake >/dev/null; then
    useradd --system --user-group --home-dir /var/lib/jmxlake --no-create-home \
        --shell /usr/sbin/nologin jmxlake
fi
install -d -o root -g jmxlake -m 0750 /etc/jmxlake
install -d -o jmxlake -g jmxlake -m 0750 /var/lib/jmxlake

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # Only running units: a first installation has no configuration yet. If a unit does not start
    # again, its configuration is the cause, not the package.
    for unit in jmxlake-agent.service 'jmxlake-agent@*.service' jmxlake-maintain.service \
        jmxlake-rollup.service; do
        systemctl try-restart "$unit" || echo "jmxlake: see systemctl status $unit" >&2
    done
fi
