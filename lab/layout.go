package lab

import "path/filepath"

// layout names the files of one lab by its folder.
type layout string

func (d layout) state() string         { return filepath.Join(string(d), "lab.json") }
func (d layout) audit() string         { return filepath.Join(string(d), "audit.log") }
func (d layout) etcd() string          { return filepath.Join(string(d), "etcd") }
func (d layout) volumePlugins() string { return filepath.Join(string(d), "volume-plugins") }
func (d layout) home() string          { return filepath.Join(string(d), "home") }
func (d layout) log(component string) string {
	return filepath.Join(string(d), "logs", component+".log")
}
func (d layout) pki(file string) string    { return filepath.Join(string(d), "pki", file) }
func (d layout) config(file string) string { return filepath.Join(string(d), "config", file) }
func (d layout) kubeconfig(who string) string {
	return filepath.Join(string(d), "kubeconfigs", who+".kubeconfig")
}

// admin is the lab's administrator among the kubeconfigs.
const admin = "admin"

const (
	caCert          = "ca.crt"
	servingCert     = "serving.crt"
	servingKey      = "serving.key"
	etcdClientCert  = "etcd-client.crt"
	etcdClientKey   = "etcd-client.key"
	serviceAcctKey  = "service-account.key"
	auditPolicy     = "audit-policy.yaml"
	schedulerConfig = "scheduler.yaml"
	kwokStages      = "kwok-stages.yaml"
	instanceTypes   = "instance-types.json"
)
