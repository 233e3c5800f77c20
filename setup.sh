echo "reads $DATA"
