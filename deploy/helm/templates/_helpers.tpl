{{- define "name" -}}
{{- printf "%s-agent" .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "labels" -}}
app.kubernetes.io/name: jmxlake-agent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: jmxlake
{{- end -}}

{{- define "weekly.name" -}}
{{- printf "%s-weekly" .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "weekly.labels" -}}
app.kubernetes.io/name: jmxlake-weekly
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: jmxlake
{{- end -}}

{{- /* The agent's configuration with what the pod decides on. */ -}}
{{- define "config" -}}
{{- $fixed := dict
      "spool" (dict "path" "/var/lib/jmxlake/spool.db" "max_size" (include "half" .))
      "health" (dict "host" "0.0.0.0" "port" 9464) -}}
{{- merge $fixed .Values.config | toYaml -}}
{{- end -}}

{{- /* Half of the volume: a spool is compacted beside itself. */ -}}
{{- define "half" -}}
{{- $size := .Values.spool.size -}}
{{- $unit := regexFind "[MGT]i$" $size -}}
{{- $mebibytes := mul (trimSuffix $unit $size | int64) (get (dict "Mi" 1 "Gi" 1024 "Ti" 1048576) $unit) -}}
{{- printf "%dMiB" (div $mebibytes 2) -}}
{{- end -}}
