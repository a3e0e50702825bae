{{/* Who is meant: a dict of direction, from or to, and peers. None: anybody. */}}
{{- define "weir.peers" -}}
{{- if .peers }}
{{ .direction }}: {{ toJson .peers }}
{{- end }}
{{- end }}

{{/* A list of ports, of TCP. */}}
{{- define "weir.ports" -}}
ports:
  {{- range . }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
{{- end }}

{{/* The head of a policy: a dict of root and policy. */}}
{{- define "weir.policy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .root.Release.Name }}-{{ .policy }}
  labels:
    {{- include "weir.labels" (dict "root" .root "name" "weir") | nindent 4 }}
{{- end }}
