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

{{- define "bucketlog.hasTls" -}}
{{- if hasSuffix "SSL" .Values.protocol }}yes{{ end -}}
{{- end -}}

{{- define "bucketlog.hasLogins" -}}
{{- if hasPrefix "SASL_" .Values.protocol }}yes{{ end -}}
{{- end -}}

{{/* The listener ADMIN, for the first administrator. With tenants, nothing would tell whose it is. */}}
{{- define "bucketlog.hasAdmin" -}}
{{- if and (include "bucketlog.hasLogins" .) (not .Values.tenants.file) }}yes{{ end -}}
{{- end -}}

{{/* SCRAM and PLAIN have credentials in the log. */}}
{{- define "bucketlog.hasPasswords" -}}
{{- if and (include "bucketlog.hasLogins" .) (without .Values.logins.mechanisms "OAUTHBEARER") }}yes{{ end -}}
{{- end -}}

{{/* OAUTHBEARER has a provider. */}}
{{- define "bucketlog.hasTokens" -}}
{{- if and (include "bucketlog.hasLogins" .) (has "OAUTHBEARER" .Values.logins.mechanisms) }}yes{{ end -}}
{{- end -}}

{{/* The names of the pods are below it: a pod's address with dashes, as the cluster's DNS makes them. */}}
{{- define "bucketlog.podDomain" -}}
{{- print (include "bucketlog.name" .) "-brokers." .Release.Namespace ".svc." .Values.tls.clusterDomain -}}
{{- end -}}

{{/* Of a broker whose listener is another than the default. A pod learns its address when it starts;
exec: the broker is process 1, and gets the SIGTERM. */}}
{{- define "bucketlog.start" -}}
{{- $admin := ternary "ADMIN://127.0.0.1:9091," "" (ne (include "bucketlog.hasAdmin" .) "") -}}
POD_NAME_IN_DNS=$(echo "$POD_IP" | tr .: --) &&
export BUCKETLOG_ADVERTISED_LISTENERS="{{ $admin }}{{ .Values.protocol }}://$POD_NAME_IN_DNS.{{ include "bucketlog.podDomain" . }}:9092" &&
exec python -P -m bucketlog.stateless_broker
{{- end -}}

{{/* A client of the listener ADMIN has no login, and must be able to add the first user. Elsewhere,
nobody is without a name. */}}
{{- define "bucketlog.superUsers" -}}
{{- $first := ternary (list "User:ANONYMOUS") list (ne (include "bucketlog.hasAdmin" .) "") -}}
{{- concat $first .Values.authorization.superUsers | uniq | join ";" -}}
{{- end -}}

{{/* The mounted secrets by their folders in /etc/bucketlog. */}}
{{- define "bucketlog.secrets" -}}
{{- $found := dict -}}
{{- if include "bucketlog.hasTls" . }}{{ $_ := set $found "tls" .Values.tls.secretName }}{{ end -}}
{{- if include "bucketlog.hasPasswords" . }}{{ $_ := set $found "logins" .Values.logins.keySecretName }}{{ end -}}
{{- if include "bucketlog.hasLogins" . }}{{ with .Values.logins.delegationTokenKeySecretName }}{{ $_ := set $found "tokens" . }}{{ end }}{{ end -}}
{{- if include "bucketlog.hasTokens" . }}{{ with .Values.logins.oauthbearer.caSecretName }}{{ $_ := set $found "provider" . }}{{ end }}{{ end -}}
{{- with .Values.redis.tlsSecretName }}{{ $_ := set $found "redis" . }}{{ end -}}
{{- toJson $found -}}
{{- end -}}
