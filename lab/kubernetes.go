package lab

import (
	"fmt"
)

func etcd(d layout, p ports) component {
	client, peer := "https://"+loopback(p.Etcd), "https://"+loopback(p.EtcdPeer)
	return component{
		name:   Etcd,
		addr:   loopback(p.Etcd),
		health: []string{"http://" + loopback(p.EtcdHealth) + "/health"},
		args: []string{
			"--name=lab",
			"--data-dir=" + d.etcd(),
			"--listen-client-urls=" + client,
			"--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=lab=" + peer,
			"--listen-metrics-urls=http://" + loopback(p.EtcdHealth),
			"--cert-file=" + d.pki(servingCert),
			"--key-file=" + d.pki(servingKey),
			"--client-cert-auth",
			"--trusted-ca-file=" + d.pki(caCert),
			"--peer-cert-file=" + d.pki(servingCert),
			"--peer-key-file=" + d.pki(servingKey),
			"--peer-client-cert-auth",
			"--peer-trusted-ca-file=" + d.pki(caCert),
			// A lab survives the death of its etcd, not of the machine.
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
	}
}

func apiServer(d layout, p ports) component {
	return component{
		name:   APIServer,
		addr:   loopback(p.APIServer),
		health: []string{"https://" + loopback(p.APIServer) + "/readyz"},
		args: []string{
			"--bind-address=127.0.0.1",
			"--advertise-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", p.APIServer),
			// An Endpoints object may not hold a loopback address.
			"--endpoint-reconciler-type=none",
			"--service-cluster-ip-range=10.96.0.0/16",
			"--etcd-servers=https://" + loopback(p.Etcd),
			"--etcd-cafile=" + d.pki(caCert),
			"--etcd-certfile=" + d.pki(etcdClientCert),
			"--etcd-keyfile=" + d.pki(etcdClientKey),
			"--tls-cert-file=" + d.pki(servingCert),
			"--tls-private-key-file=" + d.pki(servingKey),
			"--client-ca-file=" + d.pki(caCert),
			"--authorization-mode=Node,RBAC",
			// No kubelet would mount the tokens.
			"--disable-admission-plugins=ServiceAccount",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + d.pki(serviceAcctKey),
			"--service-account-signing-key-file=" + d.pki(serviceAcctKey),
			"--audit-policy-file=" + d.config(auditPolicy),
			"--audit-log-path=" + d.audit(),
			"--audit-log-format=json",
			// The log is one file, whole: tests count in it. The unit is MB, and zero would mean 100.
			"--audit-log-maxsize=100000",
			"--profiling=false",
		},
	}
}

// auditPolicyYAML records every write, by whom and with what outcome, without bodies. Reads are not recorded.
const auditPolicyYAML = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

func controllerManager(d layout, p ports) component {
	return component{
		name:   ControllerManager,
		addr:   loopback(p.ControllerManager),
		health: []string{"https://" + loopback(p.ControllerManager) + "/healthz"},
		args: []string{
			"--kubeconfig=" + d.kubeconfig(ControllerManager),
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", p.ControllerManager),
			"--tls-cert-file=" + d.pki(servingCert),
			"--tls-private-key-file=" + d.pki(servingKey),
			"--root-ca-file=" + d.pki(caCert),
			"--leader-elect=false",
			// Each controller acts with its own ServiceAccount and its own rights, as in any real cluster.
			"--use-service-account-credentials",
			"--controllers=*,-node-ipam-controller",
			// It makes this folder, by default in a system folder.
			"--flex-volume-plugin-dir=" + d.volumePlugins(),
			"--kube-api-qps=200",
			"--kube-api-burst=400",
			"--profiling=false",
		},
	}
}

func scheduler(d layout, p ports) component {
	return component{
		name:   Scheduler,
		addr:   loopback(p.Scheduler),
		health: []string{"https://" + loopback(p.Scheduler) + "/healthz"},
		args: []string{
			"--config=" + d.config(schedulerConfig),
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", p.Scheduler),
			"--tls-cert-file=" + d.pki(servingCert),
			"--tls-private-key-file=" + d.pki(servingKey),
		},
	}
}

func schedulerYAML(d layout) string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %q
  qps: 200
  burst: 400
leaderElection:
  leaderElect: false
enableProfiling: false
`, d.kubeconfig(Scheduler))
}
