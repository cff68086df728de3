{{- /* Labels of an object of one component: controller or agent. */ -}}
{{- define "tasuki.labels" -}}
app.kubernetes.io/name: tasuki
app.kubernetes.io/component: {{ . }}
{{- end -}}

{{- define "tasuki.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}
