{{/* The peers of a rule: a dict of direction, from or to, and peers. None: anybody. */}}
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

{{/* Egress for DNS. */}}
{{- define "weir.names" -}}
ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
{{- include "weir.peers" (dict "direction" "to" "peers" .Values.network.dns) }}
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
