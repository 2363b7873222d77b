{{- define "bucketlog.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "bucketlog.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "bucketlog.labels" -}}
{{ include "bucketlog.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* The zones; a nameless one where none is given. */}}
{{- define "bucketlog.zones" -}}
{{- default (list "") .Values.zones | toJson -}}
{{- end -}}

{{- define "bucketlog.image" -}}
{{- $sign := ternary "@" ":" (hasPrefix "sha256:" .Values.image.tag) -}}
{{- print .Values.image.repository $sign .Values.image.tag -}}
{{- end -}}
