#!/bin/bash
MODEL=Qwen/Qwen3-8B
kubectl apply -f - <<EOF
apiVersion: v1
kind: Pod
spec:
  containers:
    - image: lmsysorg/sglang:v0.5.9
      command: [python3, -m, sglang.launch_server, --model-path, $MODEL, --tp, "2"]
      resources: {limits: {nvidia.com/gpu: 2}}
EOF
cat > "$DIR/serve.sh" <<EOF
#!/bin/bash
exec python -m sglang.launch_server --model-path a/b "\${EXTRA[@]}" --tp \$TP
EOF
cat <<'END' > /etc/systemd/system/chat.service
[Service]
ExecStart=/usr/bin/python3 -m sglang.launch_server --model-path c/d
END
python3 - <<'PY'
import os
os.system("sglang serve --model-path e/f --tp 4")
PY
