{{/* Labels that select the pods of one program: a dict of root and name. */}}
{{- define "weir.selector" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/part-of: weir
{{- end }}

{{/* Labels of a program's objects. */}}
{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ .root.Values.image.version | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Labels that select all pods. */}}
{{- define "weir.ours" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: weir
{{- end }}

{{/* The image of a program. */}}
{{- define "weir.image" -}}
{{- with index .root.Values.image.digests .name }}{{ $.root.Values.image.repository }}/{{ $.name }}@{{ . }}{{ else }}
{{- .root.Values.image.repository }}/{{ .name }}:{{ required "image.version is empty: say which version to run, such as v1.4.0" .root.Values.image.version }}{{ end }}
{{- end }}
