{{/* A job before each version: a dict of root, name of the program's pods, job, args, environment and secrets. */}}
{{- define "weir.job" -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .job }}
  labels:
    {{- include "weir.labels" . | nindent 4 }}
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-weight: "-5"
    helm.sh/hook-delete-policy: before-hook-creation
spec:
  backoffLimit: 5
  activeDeadlineSeconds: {{ .seconds }}
  template:
    metadata:
      labels:
        {{- include "weir.labels" . | nindent 8 }}
    spec:
      {{- include "weir.pod" . | nindent 6 }}
      restartPolicy: Never
      containers:
        - name: {{ .name }}
          {{- include "weir.container" (dict "root" .root "name" "weir") | nindent 10 }}
          args: {{ toJson .args }}
          env:
            {{- include "weir.variables" .environment | trim | nindent 12 }}
          resources: {requests: {cpu: 50m, memory: 64Mi, ephemeral-storage: 16Mi}, limits: {memory: 128Mi, ephemeral-storage: 64Mi}}
          {{- if .secrets }}
          volumeMounts:
            - {name: secrets, mountPath: /run/secrets, readOnly: true}
      volumes:
        - {{- include "weir.secretVolume" .secrets | nindent 10 }}
          {{- end }}
{{- end }}
