{{/* The consumers of the log, by their services. */}}
{{- define "weir.groups" -}}
ingest: ingest.log-store
ledger: ledger.quota
grouping: grouping.clusters
{{- end }}

{{/* Not empty if the replicas of a service are scaled. */}}
{{- define "weir.scaled" -}}
{{- $scaling := .root.Values.autoscaling }}
{{- if or (and (eq .name "ingest") $scaling.ingest.enabled) (and $scaling.lag.enabled (hasKey (include "weir.groups" . | fromYaml) .name)) }}yes{{ end }}
{{- end }}
