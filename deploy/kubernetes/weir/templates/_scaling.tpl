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

{{/* Not empty if the replicas of a service are scaled by their CPU. */}}
{{- define "weir.scaledByProcessor" -}}
{{- if and (eq .name "ingest") .root.Values.autoscaling.ingest.enabled }}yes{{ end }}
{{- end }}

{{/* Between how many replicas a service is scaled. */}}
{{- define "weir.scale" -}}
{{- ternary .root.Values.autoscaling.ingest .root.Values.autoscaling.lag (not (empty (include "weir.scaledByProcessor" .))) | toYaml }}
{{- end }}

{{/* The replicas of a service. Of a scaled one they are those that run, within its bounds: without a number Kubernetes would stop all but one. */}}
{{- define "weir.replicas" -}}
{{- if include "weir.scaled" . -}}
{{- $range := include "weir.scale" . | fromYaml -}}
{{- $running := dig "spec" "replicas" 0 (lookup "apps/v1" "Deployment" .root.Release.Namespace .name) -}}
{{- min (max $running $range.min) $range.max -}}
{{- else -}}
{{- (index .root.Values.services .name).replicas -}}
{{- end -}}
{{- end }}
